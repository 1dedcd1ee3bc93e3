import { useSignal } from "@preact/signals";
import type { Changed } from "../../asking/shapes";
import { exact } from "../../figures/numbers";
import { tokens } from "../../figures/jsonText";
import { Action } from "../../parts/action";
import { Badge } from "../../parts/badge";
import { Check, Choice, Field, Text } from "../../parts/field";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { w } from "../../words/words";

interface Given {
  name: string;
  partitions: number;
  onClose: () => void;
}
type Result = { partition: number; offset: string } | { error: { message: string } };
export interface Produced extends Changed {
  results: Result[];
}

export function ProduceDialog({ name, partitions, onClose }: Given) {
  const key = useSignal("");
  const noKey = useSignal(true);
  const value = useSignal("");
  const tombstone = useSignal(false);
  const partition = useSignal("");
  const headers = useSignal<{ name: string; value: string }[]>([]);
  const looksJson = /^\s*[{[]/.test(value.value);
  const broken = looksJson && !tombstone.value && tokens(value.value) === null;
  const record = {
    key: noKey.value ? null : key.value,
    value: tombstone.value ? null : value.value,
    headers: headers.value.filter((header) => header.name !== ""),
    ...(partition.value === "" ? {} : { partition: Number(partition.value) }),
  };
  return (
    <Action<unknown>
      title={w().produceInto(name)}
      verb={w().produce}
      planned={false}
      change={{ method: "POST", path: to("/topics/{}/records", name), body: { records: [record] } }}
      done={(answer) => <Where topic={name} of={answer as Produced} />}
      onClose={onClose}
    >
      <div class="field">
        <span class="row spread">
          {w().key}
          <Check on={noKey.value} set={(on) => (noKey.value = on)}>
            {w().withoutKey}
          </Check>
        </span>
        {!noKey.value && <Text label={w().key} value={key.value} set={(next) => (key.value = next)} />}
      </div>
      <div class="field">
        <span class="row spread">
          {w().value}
          <Check on={tombstone.value} set={(on) => (tombstone.value = on)}>
            {w().tombstone}
          </Check>
        </span>
        {!tombstone.value && (
          <Text label={w().value} rows={8} value={value.value} set={(next) => (value.value = next)} autofocus />
        )}
        {looksJson && !tombstone.value && (
          <small>{broken ? <Badge tone="warn">{w().noJson}</Badge> : <Badge tone="good">JSON</Badge>}</small>
        )}
      </div>
      <div class="field">
        <span class="row spread">
          {w().headers}
          <button
            type="button"
            class="button tiny"
            onClick={() => (headers.value = [...headers.value, { name: "", value: "" }])}
          >
            {w().addHeader}
          </button>
        </span>
        {headers.value.map((header, at) => (
          <div class="form2" key={at}>
            <Text
              label={w().name}
              placeholder={w().name}
              value={header.name}
              set={(next) => (headers.value = headers.value.with(at, { ...header, name: next }))}
            />
            <Text
              label={w().value}
              placeholder={w().value}
              value={header.value}
              set={(next) => (headers.value = headers.value.with(at, { ...header, value: next }))}
            />
          </div>
        ))}
      </div>
      <Field label={w().partition}>
        <Choice
          value={partition.value}
          set={(next) => (partition.value = next)}
          of={[
            ["", w().byKey],
            ...Array.from(
              { length: Math.min(partitions, 1000) },
              (_, at) => [String(at), String(at)] as const,
            ),
          ]}
        />
      </Field>
    </Action>
  );
}

export const Where = ({ topic, of }: { topic: string; of: Produced }) => (
  <>
    {(of.results ?? []).map((result, at) =>
      "error" in result ? (
        <span key={at}>{result.error.message}</span>
      ) : (
        <Link
          key={at}
          to={
            to("/topics/{}/messages", topic) +
            `?from=offset:${result.offset}&partition=${result.partition}&at=${result.partition}:${result.offset}`
          }
        >
          {w().recordAt(String(result.partition), exact(result.offset))}
        </Link>
      ),
    )}
  </>
);
