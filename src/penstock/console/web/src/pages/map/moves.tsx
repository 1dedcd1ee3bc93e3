import type { MapAnswer } from "../../asking/shapes";
import { bytes } from "../../figures/numbers";
import { Badge } from "../../parts/badge";
import { Grid, type Column } from "../../parts/grid";
import { Panel } from "../../parts/page";
import { Empty } from "../../parts/shown";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { w } from "../../words/words";

type Partition = MapAnswer["partitions"][number];

const troubled = (one: Partition): boolean =>
  one.leader === null || one.isr.length < one.replicas.length || one.moving !== null;

/** Partitions that are not where, or not how, they should be. */
export function Moves({ of }: { of: MapAnswer }) {
  const rows = of.partitions.filter(troubled);
  return (
    <Panel title={w().notAtRest} plain>
      {rows.length ? (
        <Grid
          label={w().notAtRest}
          columns={columns()}
          total={rows.length}
          rowAt={(at) => rows[at]}
          keyOf={(row) => row.topic + "-" + row.partition}
        />
      ) : (
        <Empty title={w().allAtRest} command="penstock cluster partitions balance" />
      )}
    </Panel>
  );
}

const columns = (): Column<Partition>[] => [
  {
    key: "name",
    head: w().partition,
    name: true,
    cell: (row) => <Link to={to("/topics/{}/partitions", row.topic)}>{row.topic + "-" + row.partition}</Link>,
  },
  {
    key: "state",
    head: w().state,
    cell: (row) => (
      <span class="row">
        {row.leader === null && (
          <Badge tone="bad" mark>
            {w().leaderless}
          </Badge>
        )}
        {row.isr.length < row.replicas.length && (
          <Badge tone="warn" mark>
            {w().outOfSync}
          </Badge>
        )}
        {row.moving && (
          <Badge tone="info" mark>
            {w().moving}
          </Badge>
        )}
      </span>
    ),
  },
  { key: "leader", head: w().leader, cell: (row) => row.leader ?? "–" },
  { key: "isr", head: w().inSyncReplicas, cell: (row) => row.isr.join(", ") + " / " + row.replicas.join(", ") },
  {
    key: "move",
    head: w().move,
    cell: (row) => (row.moving ? "+" + row.moving.adding.join(", ") + " −" + row.moving.removing.join(", ") : "–"),
  },
  { key: "bytes", head: w().size, end: true, cell: (row) => bytes(row.bytes) },
];
