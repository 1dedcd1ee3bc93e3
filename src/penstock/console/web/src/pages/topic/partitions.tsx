import { useAsked } from "../../asking/resource";
import type { PartitionRow, Sampled, TopicAnswer } from "../../asking/shapes";
import { about, bytes, exact, percent } from "../../figures/numbers";
import { Opens } from "../../parts/action";
import { Badge } from "../../parts/badge";
import { Chart } from "../../parts/chart";
import { Grid, GridFoot, type Column } from "../../parts/grid";
import { ordered, useSorting } from "../../parts/ordered";
import { Panel } from "../../parts/page";
import { Shown } from "../../parts/shown";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { w } from "../../words/words";
import { Producers } from "./producers";
import { Trim } from "./trim";

export function PartitionsTab({ name, topic }: { name: string; topic: TopicAnswer | null }) {
  const asking = useAsked<Sampled & { partitions: PartitionRow[] }>(to("/topics/{}/partitions", name), [
    "metadata",
    "offsets",
  ]);
  const sorting = useSorting("partition");
  return (
    <div class="stack">
      {topic && (
        <Panel title={w().throughput}>
          <Chart
            history={topic.history}
            series={[{ key: "records_in", label: w().recordsIn }]}
            label={w().throughput}
            height={130}
          />
        </Panel>
      )}
      <Shown of={asking}>
        {(now) => {
          const rows = ordered(now.partitions, (row) => valueOf(row, sorting.by), sorting.desc);
          const trim = (
            <Opens text={w().trim}>
              {(close) => <Trim name={name} partitions={now.partitions} again={asking.again} onClose={close} />}
            </Opens>
          );
          return (
            <Panel plain title={w().partitions} end={trim}>
              <Grid
                label={w().partitions}
                columns={columns(name)}
                total={rows.length}
                rowAt={(at) => rows[at]}
                keyOf={(row) => String(row.partition)}
                sorting={sorting}
              />
              <GridFoot shown={rows.length} total={rows.length} />
            </Panel>
          );
        }}
      </Shown>
      <Producers name={name} />
    </div>
  );
}

function valueOf(row: PartitionRow, by: string): string | number | bigint | null {
  switch (by) {
    case "start":
    case "end":
    case "bytes": {
      const digits = row[by];
      return digits === null ? null : BigInt(digits);
    }
    case "records":
      return row.start === null || row.end === null ? null : BigInt(row.end) - BigInt(row.start);
    case "leader":
    case "rate":
    case "share":
      return row[by];
    default:
      return row.partition;
  }
}

const columns = (name: string): Column<PartitionRow>[] => [
  {
    key: "partition",
    head: w().partition,
    name: true,
    sort: true,
    cell: (row) => (
      <Link to={to("/topics/{}/messages", name) + "?partition=" + row.partition}>
        {w().partition + " " + row.partition}
      </Link>
    ),
  },
  {
    key: "leader",
    head: w().leader,
    sort: true,
    cell: (row) =>
      row.leader === null ? (
        <Badge tone="bad" mark>
          {w().none}
        </Badge>
      ) : (
        <Link to={to("/brokers/{}", row.leader)}>{row.leader}</Link>
      ),
  },
  { key: "replicas", head: w().replicas, cell: (row) => <Replicas of={row} /> },
  { key: "start", head: w().start, end: true, sort: true, cell: (row) => exact(row.start) },
  { key: "end", head: w().end, end: true, sort: true, cell: (row) => exact(row.end) },
  {
    key: "stable",
    head: w().lastStable,
    end: true,
    offPhone: true,
    cell: (row) =>
      row.last_stable === row.end ? <span class="soft">=</span> : <Badge tone="warn">{exact(row.last_stable)}</Badge>,
  },
  {
    key: "records",
    head: w().records,
    end: true,
    sort: true,
    offPhone: true,
    cell: (row) => (row.start === null || row.end === null ? "–" : exact(BigInt(row.end) - BigInt(row.start))),
  },
  { key: "bytes", head: w().size, end: true, sort: true, cell: (row) => bytes(row.bytes) },
  { key: "rate", head: w().rateIn, end: true, sort: true, offPhone: true, cell: (row) => about(row.rate) },
  {
    key: "share",
    head: w().share,
    sort: true,
    offPhone: true,
    cell: (row) =>
      row.share === null ? (
        "–"
      ) : (
        <span class="nowrap">
          <span class="fill">
            <i style={{ width: Math.round(row.share * 100) + "%" }} />
          </span>{" "}
          {percent(row.share)}
        </span>
      ),
  },
];

/** Every replica by its broker; those that are behind or gone differ by more than their colour. */
const Replicas = ({ of }: { of: PartitionRow }) => (
  <span class="matrix">
    <span class="row">
      {of.replicas.map((broker) => {
        const gone = of.offline.includes(broker);
        const behind = !of.isr.includes(broker);
        return (
          <i
            key={broker}
            class={gone ? "gone" : behind ? "coming" : "has"}
            title={gone ? w().down : behind ? w().outOfSync : w().inSync}
          >
            {broker}
            {gone ? "✕" : behind ? "…" : ""}
          </i>
        );
      })}
      {of.moving && <Badge tone="info">{w().moving}</Badge>}
    </span>
  </span>
);
