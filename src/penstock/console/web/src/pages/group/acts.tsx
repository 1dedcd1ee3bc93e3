import { useSignal } from "@preact/signals";
import type { GroupAnswer, Undo } from "../../asking/shapes";
import { exact, moment } from "../../figures/numbers";
import { Action, Opens } from "../../parts/action";
import { Choice, Field, Text } from "../../parts/field";
import { Grid } from "../../parts/grid";
import { Panel } from "../../parts/page";
import { go, keepingCluster, to } from "../../routing/place";
import { w } from "../../words/words";

interface Plan {
  positions: { topic: string; partition: number; was: string | null; to: string | null; records: string | null }[];
  replayed: string;
  skipped: string;
}

export const GroupActs = ({ of, again }: { of: GroupAnswer; again: () => void }) => (
  <>
    <Opens text={w().moveIt}>{(close) => <Reset of={of} again={again} onClose={close} />}</Opens>
    <Opens text={w().deleteIt}>
      {(close) => (
        <Action
          title={w().deleteGroup(of.group)}
          verb={w().deleteIt}
          danger
          confirm={of.group}
          change={{ method: "DELETE", path: to("/groups/{}", of.group), body: { confirm: of.group } }}
          onDone={() => go(keepingCluster("/groups"))}
          onClose={close}
        >
          <p>{w().deleteGroupText}</p>
        </Action>
      )}
    </Opens>
  </>
);

const PLACES = ["earliest", "latest", "time", "by", "offset", "group"] as const;
type Place = (typeof PLACES)[number];

function wish(place: Place, exactly: string): Record<string, string> | null {
  if (place === "earliest" || place === "latest") return { to: place };
  const text = exactly.trim();
  if (text === "") return null;
  if (place === "group") return { from_group: text };
  return { to: place === "by" ? (/^[+-]/.test(text) ? text : "+" + text) : place + ":" + text };
}

/** Every partition from where to where, and how much is read again or passed over, before anything is moved. */
function Reset({ of, again, onClose }: { of: GroupAnswer; again: () => void; onClose: () => void }) {
  const place = useSignal<Place>("earliest");
  const exactly = useSignal("");
  const topic = useSignal("");
  const moved = wish(place.value, exactly.value);
  const body = moved && {
    ...moved,
    topics: topic.value
      ? { [topic.value]: of.partitions.filter((one) => one.topic === topic.value).map((one) => one.partition) }
      : null,
  };
  const hints: Record<Place, string> = {
    earliest: w().toEarliestText,
    latest: w().toLatestText,
    time: "-2h, 2026-01-31T12:00:00Z",
    by: "-100, +5",
    offset: "42",
    group: w().toGroupText,
  };
  return (
    <Action<Plan>
      title={w().moveGroup(of.group)}
      verb={w().moveIt}
      wide
      change={body && { method: "POST", path: to("/groups/{}/reset", of.group), body }}
      plan={(plan) => <PlanOf of={plan} />}
      applied={(plan) => ({ plan: plan.positions.map(({ topic, partition, was, to }) => ({ topic, partition, was, to })) })}
      done={() => <span>{w().canUndo}</span>}
      onDone={again}
      onClose={onClose}
    >
      {of.members.length > 0 && <p class="wrong">{w().membersActive}</p>}
      <div class="form3">
        <Field label={w().moveTo} hint={hints[place.value]}>
          <Choice
            value={place.value}
            set={(next) => (place.value = next as Place)}
            of={[
              ["earliest", w().toEarliest],
              ["latest", w().toLatest],
              ["time", w().toTime],
              ["by", w().toBy],
              ["offset", w().toOffset],
              ["group", w().toGroup],
            ]}
          />
        </Field>
        {place.value !== "earliest" && place.value !== "latest" && (
          <Field label={{ time: w().time, by: w().records, offset: w().offset, group: w().group }[place.value]}>
            <Text value={exactly.value} set={(next) => (exactly.value = next)} autofocus />
          </Field>
        )}
        <Field label={w().topic}>
          <Choice
            value={topic.value}
            set={(next) => (topic.value = next)}
            of={[["", w().onlyAll], ...of.topics.map((one) => [one, one] as const)]}
          />
        </Field>
      </div>
    </Action>
  );
}

const PlanOf = ({ of }: { of: Plan }) => (
  <div class="plan">
    <Grid
      label={w().preview}
      total={of.positions.length}
      rowAt={(at) => of.positions[at]}
      keyOf={(row) => row.topic + "-" + row.partition}
      columns={[
        { key: "where", head: w().partition, name: true, cell: (row) => row.topic + "-" + row.partition },
        { key: "was", head: w().now, end: true, cell: (row) => (row.was === null ? w().never : exact(row.was)) },
        { key: "to", head: w().then, end: true, cell: (row) => (row.to === null ? w().unknown : exact(row.to)) },
        { key: "records", head: w().records, end: true, cell: (row) => exact(row.records) },
      ]}
    />
    <div class="grid-foot">
      <span>{w().replayed(exact(of.replayed))}</span>
      <span>{w().skippedOver(exact(of.skipped))}</span>
    </div>
  </div>
);

/** What was moved lately can be put back, as long as the server keeps where it was. */
export function Undos({ of, again }: { of: GroupAnswer; again: () => void }) {
  const chosen = useSignal<Undo | null>(null);
  const kept = of.undo ?? [];
  if (!kept.length) return null;
  return (
    <Panel title={w().movedLately} plain>
      <Grid
        label={w().movedLately}
        total={kept.length}
        rowAt={(at) => kept[at]}
        keyOf={(row) => row.id}
        columns={[
          { key: "at", head: w().time, name: true, cell: (row) => moment(row.at_ms, false) },
          { key: "by", head: w().by, cell: (row) => row.by ?? "–" },
          { key: "positions", head: w().partitions, end: true, cell: (row) => exact(row.positions) },
          { key: "until", head: w().undoUntil, end: true, offPhone: true, cell: (row) => moment(row.until_ms, false) },
          {
            key: "undo",
            head: w().actions,
            mute: true,
            end: true,
            cell: (row) => (
              <button type="button" class="button tiny" onClick={() => (chosen.value = row)}>
                {w().undo}
              </button>
            ),
          },
        ]}
      />
      {chosen.value && (
        <Action<Plan>
          title={w().undo}
          verb={w().undo}
          wide
          change={{ method: "POST", path: to("/groups/{}/undo", of.group), body: { id: chosen.value.id } }}
          plan={(plan) => plan.positions && <PlanOf of={plan} />}
          onDone={again}
          onClose={() => (chosen.value = null)}
        >
          <p>{w().undoText(moment(chosen.value.at_ms, false))}</p>
        </Action>
      )}
    </Panel>
  );
}
