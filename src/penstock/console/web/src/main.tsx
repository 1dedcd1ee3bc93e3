import "uplot/dist/uPlot.min.css";
import "./styles/tokens.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/grid.css";
import { computed } from "@preact/signals";
import { render } from "preact";
import { loginWanted } from "./asking/ask";
import { lookAgain, session } from "./asking/session";
import { hear, openStream } from "./asking/stream";
import { Empty } from "./parts/shown";
import { match } from "./routing/match";
import { path } from "./routing/place";
import { Frame } from "./shell/frame";
import { keysOpen, paletteOpen, pressed } from "./shell/keys";
import { KeysDialog } from "./shell/keysDialog";
import { LoginPage } from "./shell/login";
import { PAGES } from "./shell/pages";
import { Palette } from "./shell/palette";
import { w, wordsReady } from "./words/words";

const page = computed(() => {
  for (const [shape, show] of PAGES) {
    const names = match(shape, path.value);
    if (names) return { show, names };
  }
  return null;
});

function App() {
  if (!wordsReady.value) return null;
  if (loginWanted.value) return <LoginPage />;
  const found = page.value;
  return (
    <>
      <Frame>{found ? found.show(found.names) : <Empty title={w().notFound} text={w().notFoundText} />}</Frame>
      {paletteOpen.value && <Palette />}
      {keysOpen.value && <KeysDialog />}
    </>
  );
}

/** Until the console has said who looks, it is asked again; the frame is there meanwhile. */
async function begin(): Promise<void> {
  try {
    await lookAgain();
  } catch {
    setTimeout(() => void begin(), 1_000);
    return;
  }
  if (!session.value?.needs_login) openStream();
}

// A login that has ended elsewhere, or by itself: whoever may come in without a form goes on where they were.
hear("bye", ({ code }) => {
  if (code === "logged_out") void begin();
});
addEventListener("keydown", pressed);
render(<App />, document.body);
void begin();
