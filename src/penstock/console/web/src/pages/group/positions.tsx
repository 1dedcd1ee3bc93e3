import type { GroupAnswer, GroupPartition } from "../../asking/shapes";
import { about, exact, span } from "../../figures/numbers";
import { Badge } from "../../parts/badge";
import { Grid, GridFoot, type Column } from "../../parts/grid";
import { ordered, useSorting } from "../../parts/ordered";
import { Panel } from "../../parts/page";
import { Empty } from "../../parts/shown";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { w } from "../../words/words";

/** Where the group stands in every partition, and when it will have caught up. */
export function Positions({ of }: { of: GroupAnswer }) {
  const sorting = useSorting("lag", true);
  const rows = ordered(of.partitions, (row) => valueOf(row, sorting.by), sorting.desc);
  return (
    <Panel title={w().positions} plain>
      {rows.length ? (
        <>
          <Grid
            label={w().positions}
            columns={columns()}
            total={rows.length}
            rowAt={(at) => rows[at]}
            keyOf={(row) => row.topic + "-" + row.partition}
            sorting={sorting}
          />
          <GridFoot shown={rows.length} total={rows.length} />
        </>
      ) : (
        <Empty title={w().noPositions} text={w().noPositionsText} />
      )}
    </Panel>
  );
}

function valueOf(row: GroupPartition, by: string): string | number | bigint | null {
  switch (by) {
    case "topic":
      return row.topic + "\u0000" + String(row.partition).padStart(10, "0");
    case "committed":
    case "end":
    case "lag": {
      const digits = row[by];
      return digits === null ? null : BigInt(digits);
    }
    case "lag_s":
    case "drain_s":
    case "rate_in":
    case "rate_out":
      return row[by];
    default:
      return row.client;
  }
}

const columns = (): Column<GroupPartition>[] => [
  {
    key: "topic",
    head: w().partition,
    name: true,
    sort: true,
    cell: (row) => (
      <Link
        to={
          to("/topics/{}/messages", row.topic) +
          `?partition=${row.partition}${row.committed === null ? "" : "&from=offset:" + row.committed}`
        }
      >
        {row.topic + "-" + row.partition}
      </Link>
    ),
  },
  {
    key: "committed",
    head: w().committed,
    end: true,
    sort: true,
    cell: (row) => (row.committed === null ? <span class="soft">{w().never}</span> : exact(row.committed)),
  },
  { key: "end", head: w().end, end: true, sort: true, cell: (row) => exact(row.end) },
  { key: "lag", head: w().lag, end: true, sort: true, cell: (row) => <LagOf row={row} /> },
  {
    key: "lag_s",
    head: w().lagSeconds,
    end: true,
    sort: true,
    offPhone: true,
    cell: (row) => (row.lag_s === null ? "–" : span(row.lag_s * 1000)),
  },
  { key: "rate_in", head: w().rateIn, end: true, sort: true, offPhone: true, cell: (row) => about(row.rate_in) },
  { key: "rate_out", head: w().rateOut, end: true, sort: true, offPhone: true, cell: (row) => about(row.rate_out) },
  {
    key: "drain_s",
    head: w().drained,
    end: true,
    sort: true,
    offPhone: true,
    cell: (row) => (row.drain_s === null ? "–" : span(row.drain_s * 1000)),
  },
  {
    key: "client",
    head: w().member,
    sort: true,
    offPhone: true,
    cell: (row) =>
      row.client === null ? (
        <span class="soft">–</span>
      ) : (
        <span title={row.member ?? undefined}>{row.client + (row.host ?? "").replace("/", " @ ")}</span>
      ),
  },
];

/** What retention took before it was read is said at the place where it is missing. */
function LagOf({ row }: { row: GroupPartition }) {
  const lost = row.committed !== null && row.start !== null && BigInt(row.committed) < BigInt(row.start);
  return (
    <>
      {lost && (
        <>
          <Badge tone="bad" mark>
            {w().lost(exact(BigInt(row.start ?? 0) - BigInt(row.committed ?? 0)))}
          </Badge>{" "}
        </>
      )}
      {exact(row.lag)}
    </>
  );
}
