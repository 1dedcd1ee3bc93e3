import { useSignal } from "@preact/signals";
import { w } from "../words/words";

/** What does the same in a terminal. */
export function Command({ text }: { text: string }) {
  const copied = useSignal(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      copied.value = true;
      setTimeout(() => (copied.value = false), 1_500);
    } catch {
      // Away from localhost and without TLS a browser has no clipboard; the text can be marked.
    }
  };
  return (
    <div class="command">
      <code>{text}</code>
      <button type="button" class="button plain tiny" onClick={() => void copy()}>
        <span aria-live="polite">{copied.value ? w().copied : w().copy}</span>
      </button>
    </div>
  );
}
