import { useSignal, type Signal } from "@preact/signals";
import type { Bytes, Stored } from "../../asking/shapes";
import { bytes } from "../../figures/numbers";
import { Action } from "../../parts/action";
import { Check, Field, Text } from "../../parts/field";
import { to } from "../../routing/place";
import { w } from "../../words/words";
import { Where, type Produced } from "./produce";

interface Plan {
  key: number | null;
  value: number | null;
  headers: number;
}

/** What a field of text would not give back as it is stays as it is stored: bytes, what is cut, line ends of others. */
const editable = (side: Bytes, lines: boolean): boolean =>
  side.text !== null && side.as !== "hex" && !side.cut && !(lines ? /\r/ : /[\r\n]/).test(side.text);

/** A record once more. The server takes it from the log: what this page shows of it may be less, or look like more. */
export function SendAgainDialog({ name, of, onClose }: { name: string; of: Stored; onClose: () => void }) {
  const topic = useSignal(name);
  const key = useSignal<string | null>(null);
  const value = useSignal<string | null>(null);
  const body = {
    ...(topic.value === name ? {} : { to: topic.value }),
    ...(key.value === null ? {} : { key: key.value }),
    ...(value.value === null ? {} : { value: value.value }),
  };
  return (
    <Action<Plan>
      title={w().sendAgain}
      verb={w().sendAgain}
      change={
        topic.value ? { method: "POST", path: to("/topics/{}/records/{}/{}/send", name, of.partition, of.offset), body } : null
      }
      plan={(plan) => <p class="small">{w().sendAgainPlan(size(plan.key), size(plan.value), String(plan.headers))}</p>}
      done={(answer) => <Where topic={topic.value} of={answer as Produced} />}
      onClose={onClose}
    >
      <p>{w().sendAgainText}</p>
      <Field label={w().toTopic}>
        <Text value={topic.value} set={(next) => (topic.value = next)} autofocus />
      </Field>
      <Side label={w().key} stored={of.key} changed={key} />
      <Side label={w().value} stored={of.value} changed={value} rows={8} />
    </Action>
  );
}

const size = (count: number | null): string => (count === null ? "null" : bytes(count));

function Side({
  label,
  stored,
  changed,
  rows,
}: {
  label: string;
  stored: Bytes;
  changed: Signal<string | null>;
  rows?: number;
}) {
  const can = editable(stored, rows !== undefined);
  return (
    <div class="field">
      <span class="row spread">
        {label}
        {can && (
          <Check on={changed.value !== null} set={(on) => (changed.value = on ? stored.text : null)}>
            {w().changeSide}
          </Check>
        )}
      </span>
      {changed.value !== null ? (
        <Text label={label} value={changed.value} set={(next) => (changed.value = next)} {...(rows ? { rows } : {})} />
      ) : (
        <small>{stored.text === null ? "null" : can ? w().asStored : w().onlyAsStored}</small>
      )}
    </div>
  );
}
