import { useSignal } from "@preact/signals";
import type { TopicAnswer } from "../../asking/shapes";
import { Action, Opens } from "../../parts/action";
import { Field, Text } from "../../parts/field";
import { go, keepingCluster, to } from "../../routing/place";
import { w } from "../../words/words";

/** What is done to a topic as a whole. */
export const TopicActs = ({ of, again }: { of: TopicAnswer; again: () => void }) => (
  <>
    <Opens text={w().addPartitions}>{(close) => <Grow of={of} again={again} onClose={close} />}</Opens>
    <Opens text={w().elect}>
      {(close) => (
        <Action<{ partitions: { partition: number; leader: number; preferred: number }[] }>
          title={w().elect}
          verb={w().elect}
          change={{ method: "POST", path: to("/topics/{}/elect", of.name), body: {} }}
          plan={(plan) => <p class="small">{w().electPlan(plan.partitions.length)}</p>}
          onDone={again}
          onClose={close}
        >
          <p>{w().electText}</p>
        </Action>
      )}
    </Opens>
    <Opens text={w().deleteIt}>
      {(close) => (
        <Action
          title={w().deleteTopic(of.name)}
          verb={w().deleteIt}
          danger
          confirm={of.name}
          change={{ method: "DELETE", path: to("/topics/{}", of.name), body: { confirm: of.name } }}
          onDone={() => go(keepingCluster("/topics"))}
          onClose={close}
        >
          <p>{w().deleteTopicText}</p>
        </Action>
      )}
    </Opens>
  </>
);

function Grow({ of, again, onClose }: { of: TopicAnswer; again: () => void; onClose: () => void }) {
  const wanted = useSignal(String(of.partitions));
  const count = Number(wanted.value);
  const body = Number.isInteger(count) && count > of.partitions ? { partitions: count } : null;
  return (
    <Action
      title={w().addPartitions}
      verb={w().add}
      change={body && { method: "POST", path: to("/topics/{}/grow", of.name), body }}
      onDone={again}
      onClose={onClose}
    >
      <p>{w().addPartitionsText}</p>
      <Field label={w().partitions}>
        <Text type="number" value={wanted.value} set={(next) => (wanted.value = next)} autofocus />
      </Field>
    </Action>
  );
}
