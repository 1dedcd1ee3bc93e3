import { useSignal } from "@preact/signals";
import type { Bytes, Changed, Stored } from "../../asking/shapes";
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
  /** A record that is sent again, as it is or changed. */
  like?: Stored;
  onClose: () => void;
}
type Result = { partition: number; offset: string } | { error: { message: string } };
interface Produced extends Changed {
  results: Result[];
}

const base64Of = (hex: string): string =>
  btoa(String.fromCharCode(...(hex.match(/../g) ?? []).map((pair) => parseInt(pair, 16))));

/** Text goes as text; bytes that are no text stay what they are. */
function side(name: "key" | "value", text: string | null, like: Bytes | undefined): Record<string, string | null> {
  if (text !== null && like?.as === "hex" && like.text === text) return { [name + "_base64"]: base64Of(text) };
  return { [name]: text };
}

export function ProduceDialog({ name, partitions, like, onClose }: Given) {
  const topic = useSignal(name);
  const key = useSignal(like?.key.text ?? "");
  const noKey = useSignal(like ? like.key.text === null : true);
  const value = useSignal(like?.value.text ?? "");
  const tombstone = useSignal(like ? like.value.text === null : false);
  const partition = useSignal("");
  const headers = useSignal(
    (like?.headers ?? []).map((header) => ({ name: header.name, value: header.value.text ?? "" })),
  );
  const looksJson = /^\s*[{[]/.test(value.value);
  const broken = looksJson && !tombstone.value && tokens(value.value) === null;
  const record = {
    ...side("key", noKey.value ? null : key.value, like?.key),
    ...side("value", tombstone.value ? null : value.value, like?.value),
    headers: headers.value.filter((header) => header.name !== ""),
    ...(partition.value === "" ? {} : { partition: Number(partition.value) }),
  };
  return (
    <Action<unknown>
      title={like ? w().sendAgain : w().produceInto(name)}
      verb={like ? w().sendAgain : w().produce}
      planned={false}
      change={
        topic.value
          ? { method: "POST", path: to("/topics/{}/records", topic.value), body: { records: [record] } }
          : null
      }
      done={(answer) => <Where topic={topic.value} of={answer as Produced} />}
      onClose={onClose}
    >
      {like && (
        <Field label={w().toTopic}>
          <Text value={topic.value} set={(next) => (topic.value = next)} />
        </Field>
      )}
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
              { length: Math.min(topic.value === name ? partitions : 1, 1000) },
              (_, at) => [String(at), String(at)] as const,
            ),
          ]}
        />
      </Field>
    </Action>
  );
}

const Where = ({ topic, of }: { topic: string; of: Produced }) => (
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
