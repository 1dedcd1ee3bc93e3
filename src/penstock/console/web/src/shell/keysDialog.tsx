import { Dialog } from "../parts/dialog";
import { w } from "../words/words";
import { keysOpen } from "./keys";
import { ENTRIES } from "./pages";

export const KeysDialog = () => (
  <Dialog title={w().keys} onClose={() => (keysOpen.value = false)}>
    <dl class="pairs">
      <Key keys={["Ctrl K"]} does={w().search} />
      <Key keys={["/"]} does={w().filter} />
      <Key keys={["j", "k"]} does={w().keyRows} />
      <Key keys={["Enter"]} does={w().keyOpen} />
      <Key keys={["Esc"]} does={w().close} />
      {ENTRIES.map((entry) => entry && <Key key={entry.to} keys={["g", entry.letter]} does={w()[entry.word]} />)}
    </dl>
  </Dialog>
);

const Key = ({ keys, does }: { keys: string[]; does: string }) => (
  <>
    <dt>
      {keys.map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </dt>
    <dd>{does}</dd>
  </>
);
