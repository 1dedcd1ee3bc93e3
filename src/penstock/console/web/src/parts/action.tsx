// Every change is the same three steps: say what is wanted, see what it would do and its command, do it.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { asRefusal, ask, type Asking, type Refusal } from "../asking/ask";
import type { Changed } from "../asking/shapes";
import { w } from "../words/words";
import { Command } from "./command";
import { Dialog } from "./dialog";
import { Refused } from "./shown";

export interface Change {
  method: NonNullable<Asking["method"]>;
  path: string;
  body: Record<string, unknown>;
}
interface Given<Plan> {
  title: string;
  /** Null while the form is not complete. */
  change: Change | null;
  verb: string;
  danger?: boolean;
  /** What must be written before this can be done: the name of what goes. */
  confirm?: string;
  wide?: boolean;
  /** Whether the server can say beforehand what would happen. */
  planned?: boolean;
  plan?: (plan: Plan) => ComponentChildren;
  /** What is sent to do just what was planned, where doing it a moment later would be something else. */
  applied?: (plan: Plan, body: Record<string, unknown>) => Record<string, unknown>;
  done?: (answer: Changed<Plan>) => ComponentChildren;
  onDone?: (answer: Changed<Plan>) => void;
  onClose: () => void;
  children?: ComponentChildren;
}

const PAUSE_MS = 250;

export function Action<Plan>(given: Given<Plan>) {
  const { change, onClose } = given;
  const answer = useSignal<Changed<Plan> | null>(null);
  const refusal = useSignal<Refusal | null>(null);
  const done = useSignal<Changed<Plan> | null>(null);
  const busy = useSignal(false);
  const typed = useSignal("");
  const planned = given.planned ?? true;
  const key = change === null ? null : change.method + change.path + JSON.stringify(change.body);
  useEffect(() => {
    answer.value = null;
    refusal.value = null;
    if (change === null || !planned) return undefined;
    const running = new AbortController();
    const timer = setTimeout(() => {
      const { method, path, body } = change;
      ask<Changed<Plan>>(path, { method, body: { ...body, dry_run: true }, signal: running.signal }).then(
        (told) => running.signal.aborted || (answer.value = told),
        (error) => running.signal.aborted || (refusal.value = asRefusal(error)),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      running.abort();
    };
  }, [key]);
  const carryOut = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (change === null || busy.peek()) return;
    busy.value = true;
    refusal.value = null;
    try {
      const { method, path } = change;
      const plan = answer.peek()?.plan;
      const body = plan !== undefined && given.applied ? given.applied(plan, change.body) : change.body;
      done.value = await ask<Changed<Plan>>(path, { method, body });
      given.onDone?.(done.value);
    } catch (error) {
      refusal.value = asRefusal(error);
    } finally {
      busy.value = false;
    }
  };
  const ready =
    change !== null &&
    !busy.value &&
    (!planned || answer.value !== null) &&
    (given.confirm === undefined || typed.value === given.confirm);
  if (done.value)
    return (
      <Dialog title={given.title} class={given.wide ? "wide" : undefined} onClose={onClose}>
        <div class="told good" role="status">
          <strong>{w().isDone}</strong>
          {given.done?.(done.value)}
        </div>
        {done.value.command && <AsCommand text={done.value.command} />}
        <div class="row spread">
          <span />
          <button type="button" class="button main" autoFocus onClick={onClose}>
            {w().close}
          </button>
        </div>
      </Dialog>
    );
  return (
    <Dialog title={given.title} class={given.wide ? "wide" : undefined} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void carryOut(event)}>
        {given.children}
        {answer.value?.plan !== undefined && answer.value.plan !== null && given.plan?.(answer.value.plan)}
        {given.confirm !== undefined && (
          <label class="field">
            <span>{w().typeName(given.confirm)}</span>
            <input
              class="input"
              autocomplete="off"
              spellcheck={false}
              value={typed.value}
              onInput={(event) => (typed.value = event.currentTarget.value)}
            />
          </label>
        )}
        {refusal.value && <Refused refusal={refusal.value} />}
        {answer.value?.command && <AsCommand text={answer.value.command} />}
        <div class="row acts-end">
          <button type="button" class="button" onClick={onClose}>
            {w().cancel}
          </button>
          <button class={"button " + (given.danger ? "danger" : "main")} disabled={!ready}>
            {given.verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export const AsCommand = ({ text }: { text: string }) => (
  <div class="field">
    <span>{w().asCommand}</span>
    <Command text={text} />
  </div>
);

/** A button that opens a dialog; where nothing may be changed it says so. */
export function Opens({
  text,
  main,
  children,
}: {
  text: string;
  main?: boolean;
  children: (close: () => void) => ComponentChildren;
}) {
  const open = useSignal(false);
  const close = (): void => void (open.value = false);
  return (
    <>
      <button type="button" class={"button" + (main ? " main" : "")} onClick={() => (open.value = true)}>
        {text}
      </button>
      {open.value && children(close)}
    </>
  );
}
