import type { MapAnswer } from "../../asking/shapes";
import { about, bytes, exact } from "../../figures/numbers";
import { Grid, GridFoot, type Column } from "../../parts/grid";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { w } from "../../words/words";

export type Measure = "leaders" | "replicas" | "bytes";
type Cell = MapAnswer["cells"][number];
interface Row {
  topic: string;
  of: Map<number, Cell>;
}

const STEPS = 5;

/** Deeper is more. The figure stands in each square, and a mark where replicas are behind, so nothing needs colour. */
export function HeatMap({ of, by, wanted }: { of: MapAnswer; by: Measure; wanted: string }) {
  const rows = rowsOf(of.cells).filter((row) => row.topic.toLowerCase().includes(wanted));
  const most = of.cells.reduce((top, cell) => Math.max(top, amount(cell, by)), 0);
  const columns: Column<Row>[] = [
    {
      key: "topic",
      head: w().topic,
      name: true,
      cell: (row) => <Link to={to("/topics/{}/partitions", row.topic)}>{row.topic}</Link>,
    },
    ...of.brokers.map((broker): Column<Row> => ({
      key: "b" + broker.id,
      head: (broker.alive ? "" : "✕ ") + w().broker(broker.id) + (broker.rack ? " · " + broker.rack : ""),
      cell: (row) => <Square of={row.of.get(broker.id)} by={by} most={most} />,
    })),
  ];
  return (
    <>
      <Grid
        label={w().whereTopicsAre}
        class="heat"
        columns={columns}
        total={rows.length}
        rowAt={(at) => rows[at]}
        keyOf={(row) => row.topic}
      />
      <GridFoot shown={rows.length} total={rows.length}>
        <span>{w().heatNote}</span>
      </GridFoot>
    </>
  );
}

function rowsOf(cells: Cell[]): Row[] {
  const rows = new Map<string, Row>();
  for (const cell of cells) {
    let row = rows.get(cell.topic);
    if (!row) rows.set(cell.topic, (row = { topic: cell.topic, of: new Map() }));
    row.of.set(cell.broker, cell);
  }
  return [...rows.values()].sort((one, other) => (one.topic < other.topic ? -1 : 1));
}

// Only the depth of a colour comes from this number; what is written is exact.
const amount = (cell: Cell, by: Measure): number => (by === "bytes" ? Number(cell.bytes ?? 0) : cell[by]);

function Square({ of, by, most }: { of: Cell | undefined; by: Measure; most: number }) {
  if (!of) return <span class="square none" title={w().none} />;
  const depth = most === 0 ? 0 : Math.ceil((amount(of, by) / most) * STEPS);
  const text = by === "bytes" ? bytes(of.bytes) : about(of[by]);
  const whole = `${w().leaders} ${exact(of.leaders)}, ${w().replicas} ${exact(of.replicas)}, ${w().outOfSync} ${exact(of.behind)}, ${bytes(of.bytes)}`;
  return (
    <span class={"square d" + depth + (of.behind ? " behind" : "")} title={whole}>
      {text}
      {of.behind > 0 && <b> ▲{exact(of.behind)}</b>}
    </span>
  );
}
