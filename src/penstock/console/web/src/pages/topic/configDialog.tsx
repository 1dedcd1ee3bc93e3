import { useSignal } from "@preact/signals";
import type { ConfigEntry } from "../../asking/shapes";
import { Action } from "../../parts/action";
import { Check, Choice, Field, Text } from "../../parts/field";
import { told, w } from "../../words/words";
import { meaningOf } from "./config";

interface Plan {
  changes: { name: string; was: string | null; to: string | null; was_source: string }[];
}
interface Given {
  path: string;
  entry: ConfigEntry;
  onDone: () => void;
  onClose: () => void;
}

const DEFAULTS = ["default", "static"];

/** What it is, what it would be, and what comes with that; a value that is set can be taken away again. */
export function ConfigDialog({ path, entry, onDone, onClose }: Given) {
  const value = useSignal(entry.value ?? "");
  const unset = useSignal(false);
  const changed = unset.value || value.value !== (entry.value ?? "");
  const body = unset.value ? { set: {}, unset: [entry.name] } : { set: { [entry.name]: value.value }, unset: [] };
  return (
    <Action<Plan>
      title={entry.name}
      verb={w().save}
      change={changed ? { method: "PATCH", path, body } : null}
      plan={(plan) => <Diff of={plan} />}
      done={() => null}
      onDone={onDone}
      onClose={onClose}
    >
      {entry.doc && <p class="soft">{entry.doc}</p>}
      <dl class="pairs small">
        <dt>{w().source}</dt>
        <dd>{told("source_", entry.source, entry.source)}</dd>
        <dt>{w().defaultValue}</dt>
        <dd class="mono">{entry.default ?? "–"}</dd>
      </dl>
      <Field
        label={w().value}
        hint={
          meaningOf(value.value, entry.unit) ??
          (entry.unit === "ms" ? "7d, 12h, 90s" : entry.unit === "bytes" ? "1GiB, 64MiB" : "")
        }
      >
        {entry.type === "bool" ? (
          <Choice
            value={value.value}
            set={(next) => (value.value = next)}
            of={[
              ["true", "true"],
              ["false", "false"],
            ]}
          />
        ) : entry.values && entry.type !== "list" ? (
          <Choice
            value={value.value}
            set={(next) => (value.value = next)}
            of={entry.values.map((one) => [one, one] as const)}
          />
        ) : (
          <Text value={value.value} set={(next) => (value.value = next)} autofocus />
        )}
      </Field>
      {!DEFAULTS.includes(entry.source) && (
        <Check on={unset.value} set={(on) => (unset.value = on)}>
          {w().backToDefault}
        </Check>
      )}
    </Action>
  );
}

const Diff = ({ of }: { of: Plan }) => (
  <div class="told">
    {of.changes.map((change) => (
      <div key={change.name} class="mono">
        {change.name}: <del>{change.was ?? "–"}</del> → <ins>{change.to ?? w().defaultValue}</ins>
      </div>
    ))}
  </div>
);
