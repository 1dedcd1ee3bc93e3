import { useSignal } from "@preact/signals";
import { Action } from "../parts/action";
import { Choice, Field, Text } from "../parts/field";
import { Link } from "../routing/link";
import { to } from "../routing/place";
import { w } from "../words/words";

const KINDS = {
  events: {},
  compacted: { "cleanup.policy": "compact" },
  forEver: { "retention.ms": "-1" },
} as const;
type Kind = keyof typeof KINDS;

const whole = (text: string): number | null => (text.trim() === "" ? null : Number(text));

export function CreateTopic({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const name = useSignal("");
  const partitions = useSignal("");
  const replication = useSignal("");
  const kind = useSignal<Kind>("events");
  const body = {
    name: name.value.trim(),
    partitions: whole(partitions.value),
    replication: whole(replication.value),
    configs: KINDS[kind.value],
  };
  return (
    <Action
      title={w().createTopic}
      verb={w().create}
      change={body.name ? { method: "POST", path: "/topics", body } : null}
      done={() => <Link to={to("/topics/{}/messages", body.name)}>{body.name}</Link>}
      onDone={onDone}
      onClose={onClose}
    >
      <Field label={w().name}>
        <Text value={name.value} set={(next) => (name.value = next)} placeholder="orders" autofocus />
      </Field>
      <div class="form2">
        <Field label={w().partitions} hint={w().asBroker}>
          <Text type="number" value={partitions.value} set={(next) => (partitions.value = next)} />
        </Field>
        <Field label={w().replication} hint={w().asBroker}>
          <Text type="number" value={replication.value} set={(next) => (replication.value = next)} />
        </Field>
      </div>
      <Field
        label={w().keepWhat}
        hint={
          { events: w().kindEventsText, compacted: w().kindCompactedText, forEver: w().kindForEverText }[kind.value]
        }
      >
        <Choice
          value={kind.value}
          set={(next) => (kind.value = next as Kind)}
          of={[
            ["events", w().kindEvents],
            ["compacted", w().kindCompacted],
            ["forEver", w().kindForEver],
          ]}
        />
      </Field>
    </Action>
  );
}
