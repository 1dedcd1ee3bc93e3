import { useSignal } from "@preact/signals";
import type { Bytes } from "../asking/shapes";
import { bytes } from "../figures/numbers";
import { conditionOf, layOut, readable, tokens, type Line, type Member } from "../figures/jsonText";
import { w } from "../words/words";
import { Badge } from "./badge";

/** One line of a value, for lists. */
export function Brief({ of, most = 200 }: { of: Bytes; most?: number }) {
  if (of.as === null || of.text === null) return <Badge>null</Badge>;
  if (of.text === "") return <span class="soft">{w().emptyText}</span>;
  const text = of.text.length > most ? of.text.slice(0, most) + "…" : of.text;
  return <span class="mono">{of.as === "json" ? readable(text) : text}</span>;
}

const LINES = 400;

/** All of a value: as it is stored, or JSON laid out. What is stored is written as text, whatever it says. */
export function ValueOf({ of, onCondition }: { of: Bytes; onCondition?: (condition: string) => void }) {
  const raw = useSignal(false);
  const all = useSignal(false);
  if (of.as === null || of.text === null) return <Badge>null</Badge>;
  const found = of.as === "hex" || of.cut ? null : tokens(of.text);
  const lines = found && /[{[]/.test(found[0]?.text ?? "") ? layOut(found) : null;
  const laidOut = lines !== null && !raw.value;
  const shown = laidOut && !all.value ? lines.slice(0, LINES) : lines;
  return (
    <div class="value">
      <div class="row small soft">
        <Badge>{of.as}</Badge>
        {bytes(of.size)}
        {of.cut && <Badge tone="warn">{w().valueCut}</Badge>}
        {lines && (
          <button
            type="button"
            class="button plain tiny"
            aria-pressed={raw.value}
            onClick={() => (raw.value = !raw.value)}
          >
            {raw.value ? w().laidOut : w().asStored}
          </button>
        )}
      </div>
      {laidOut && shown ? (
        <pre class="json" tabIndex={0} aria-label={w().value}>
          {shown.map((line, at) => (
            <LineOf key={at} line={line} onCondition={onCondition} />
          ))}
          {shown.length < lines.length && (
            <button type="button" class="button tiny" onClick={() => (all.value = true)}>
              {w().moreLines(lines.length - shown.length)}
            </button>
          )}
        </pre>
      ) : (
        <pre class="json wrapped" tabIndex={0} aria-label={w().value}>
          {of.as === "hex" ? hexLines(of.text) : of.text}
        </pre>
      )}
      {of.others && of.others.length > 0 && (
        <details>
          <summary>{w().howRead}</summary>
          <ul class="small">
            {of.others.map(([kind, why]) => (
              <li key={kind}>
                <strong>{kind}</strong>: {why}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function LineOf({ line, onCondition }: { line: Line; onCondition: ((condition: string) => void) | undefined }) {
  return (
    <div style={{ paddingLeft: line.depth * 16 + "px" }}>
      {line.tokens.map((token, at) => (
        <span key={at} class={"t-" + token.kind}>
          {token.kind === "string" || token.kind === "key" ? readable(token.text) : token.text}
        </span>
      ))}
      {line.member && onCondition && <Asks member={line.member} onCondition={onCondition} />}
    </div>
  );
}

/** "Only with this" and "without this", where the conditions can name the member. */
function Asks({ member, onCondition }: { member: Member; onCondition: (condition: string) => void }) {
  const only = conditionOf(member, "==");
  const without = conditionOf(member, "!=");
  if (only === null || without === null) return null;
  return (
    <span class="asks">
      <button type="button" aria-label={w().onlyThis + ": " + only} title={only} onClick={() => onCondition(only)}>
        =
      </button>
      <button
        type="button"
        aria-label={w().withoutThis + ": " + without}
        title={without}
        onClick={() => onCondition(without)}
      >
        ≠
      </button>
    </span>
  );
}

/** Sixteen bytes a line, with those that are letters beside them. */
function hexLines(digits: string): string {
  const lines: string[] = [];
  for (let at = 0; at < digits.length && lines.length < 4096; at += 32) {
    const pairs = digits.slice(at, at + 32).match(/../g) ?? [];
    const letters = pairs
      .map((pair) => parseInt(pair, 16))
      .map((code) => (code >= 32 && code < 127 ? String.fromCharCode(code) : "·"));
    lines.push((at / 2).toString(16).padStart(6, "0") + "  " + pairs.join(" ").padEnd(47) + "  " + letters.join(""));
  }
  return lines.join("\n");
}
