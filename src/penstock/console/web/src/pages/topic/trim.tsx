import { useSignal } from "@preact/signals";
import type { PartitionRow } from "../../asking/shapes";
import { exact } from "../../figures/numbers";
import { Action } from "../../parts/action";
import { Choice, Field, Text } from "../../parts/field";
import { Grid } from "../../parts/grid";
import { to } from "../../routing/place";
import { w } from "../../words/words";

interface Cut {
  partition: number;
  start: string;
  before: string;
  records: string;
}

/** Deletes what lies before an offset. What is done is what was shown: records that come meanwhile stay. */
export function Trim({
  name,
  partitions,
  again,
  onClose,
}: {
  name: string;
  partitions: PartitionRow[];
  again: () => void;
  onClose: () => void;
}) {
  const which = useSignal("");
  const until = useSignal("end");
  const exactly = useSignal("");
  const cut = until.value === "end" ? "end" : exactly.value.trim();
  const chosen = which.value === "" ? partitions.map((row) => String(row.partition)) : [which.value];
  const before = cut === "end" || /^\d{1,19}$/.test(cut) ? Object.fromEntries(chosen.map((one) => [one, cut])) : null;
  return (
    <Action<Cut[]>
      title={w().trimTopic(name)}
      verb={w().trim}
      danger
      wide
      confirm={name}
      change={before && { method: "POST", path: to("/topics/{}/trim", name), body: { before, confirm: name } }}
      plan={(plan) => <PlanOf of={plan} />}
      applied={(plan, body) => ({ ...body, before: Object.fromEntries(plan.map((row) => [row.partition, row.before])) })}
      onDone={again}
      onClose={onClose}
    >
      <p>{w().trimText}</p>
      <div class="form3">
        <Field label={w().partition}>
          <Choice
            value={which.value}
            set={(next) => (which.value = next)}
            of={[["", w().allPartitions], ...partitions.map((row) => [String(row.partition), String(row.partition)] as const)]}
          />
        </Field>
        <Field label={w().trimUntil}>
          <Choice
            value={until.value}
            set={(next) => (until.value = next)}
            of={[
              ["end", w().trimAll],
              ["offset", w().trimBefore],
            ]}
          />
        </Field>
        {until.value === "offset" && (
          <Field label={w().offset}>
            <Text value={exactly.value} set={(next) => (exactly.value = next)} autofocus />
          </Field>
        )}
      </div>
    </Action>
  );
}

const PlanOf = ({ of }: { of: Cut[] }) => (
  <div class="plan">
    <Grid
      label={w().preview}
      total={of.length}
      rowAt={(at) => of[at]}
      keyOf={(row) => String(row.partition)}
      columns={[
        { key: "partition", head: w().partition, name: true, cell: (row) => w().partition + " " + row.partition },
        { key: "start", head: w().start, end: true, cell: (row) => exact(row.start) },
        { key: "before", head: w().then, end: true, cell: (row) => exact(row.before) },
        { key: "records", head: w().records, end: true, cell: (row) => exact(row.records) },
      ]}
    />
  </div>
);
