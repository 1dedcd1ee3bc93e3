import type { ComponentChildren } from "preact";
import type { Refusal } from "../asking/ask";
import type { Resource } from "../asking/resource";
import { told, w } from "../words/words";
import { Command } from "./command";

/** What went wrong, in a sentence, and what to do about it. A command in back-quotes can be copied. */
export function Refused({ refusal, again }: { refusal: Refusal; again?: () => void }) {
  const own = refusal.params.command;
  const command = typeof own === "string" ? own : /`(penstock [^`]+)`/.exec(refusal.attempt)?.[1];
  const mild = refusal.status === 503 || refusal.status === 0 || refusal.status === 404;
  return (
    <div class={"refused" + (mild ? " mild" : "")} role="alert">
      <strong>{refusal.message || told("error_", refusal.code, refusal.code)}</strong>
      {refusal.attempt && <span>{refusal.attempt.replace(/`/g, "")}</span>}
      {command && <Command text={command} />}
      {again && (
        <div>
          <button type="button" class="button tiny" onClick={again}>
            {w().again}
          </button>
        </div>
      )}
    </div>
  );
}

/** The thing when it is there; a pale shape of it, or why not, until then. What was seen stays when asking fails. */
export function Shown<T>({ of, children }: { of: Resource<T>; children: (data: T) => ComponentChildren }) {
  const { data, refusal } = of.seen.value;
  if (data !== null) return <>{children(data)}</>;
  if (refusal) return <Refused refusal={refusal} again={of.again} />;
  return (
    <div class="stack" role="status" aria-label={w().loading}>
      <div class="skeleton" />
      <div class="skeleton tall" />
    </div>
  );
}

export const Empty = ({
  title,
  text,
  command,
  children,
}: {
  title: string;
  text?: string;
  command?: string;
  children?: ComponentChildren;
}) => (
  <div class="empty">
    <strong>{title}</strong>
    {text && <span>{text}</span>}
    {command && <Command text={command} />}
    {children}
  </div>
);
