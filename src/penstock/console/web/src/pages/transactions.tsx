import { useAsked } from "../asking/resource";
import type { TransactionRow } from "../asking/shapes";
import { exact } from "../figures/numbers";
import { Badge } from "../parts/badge";
import { Command } from "../parts/command";
import { Grid, GridFoot, type Column } from "../parts/grid";
import { Panel } from "../parts/page";
import { w } from "../words/words";

/** Beside the groups: transactions that this person may see. Where there are none, or no right, there is nothing. */
export function Transactions() {
  const asking = useAsked<{ total: number; items: TransactionRow[]; command: string }>("/transactions", ["groups"]);
  const now = asking.seen.value.data;
  if (now === null || now.items.length === 0) return null;
  return (
    <Panel title={w().transactions} plain>
      <Grid
        label={w().transactions}
        columns={columns()}
        total={now.items.length}
        rowAt={(at) => now.items[at]}
        keyOf={(row) => row.id}
      />
      <GridFoot shown={now.items.length} total={now.total} />
      <div class="foot-command">
        <Command text={now.command} />
      </div>
    </Panel>
  );
}

const OPEN = ["Ongoing", "PrepareCommit", "PrepareAbort"];

const columns = (): Column<TransactionRow>[] => [
  { key: "id", head: w().transaction, name: true, cell: (row) => <span class="mono">{row.id}</span> },
  {
    key: "state",
    head: w().state,
    cell: (row) => <Badge tone={OPEN.includes(row.state) ? "warn" : "quiet"}>{row.state}</Badge>,
  },
  { key: "producer", head: w().producerId, end: true, cell: (row) => exact(row.producer_id) },
  { key: "coordinator", head: w().coordinator, end: true, cell: (row) => exact(row.coordinator) },
];
