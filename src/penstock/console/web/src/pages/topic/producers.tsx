import { useAsked } from "../../asking/resource";
import type { ProducerRow } from "../../asking/shapes";
import { exact, moment } from "../../figures/numbers";
import { Badge } from "../../parts/badge";
import { Command } from "../../parts/command";
import { Grid, type Column } from "../../parts/grid";
import { Panel } from "../../parts/page";
import { Empty, Shown } from "../../parts/shown";
import { to } from "../../routing/place";
import { w } from "../../words/words";

/** Producers with an id that brokers still know, and which of them holds a transaction open. */
export function Producers({ name }: { name: string }) {
  const asking = useAsked<{ producers: ProducerRow[] }>(to("/topics/{}/producers", name), ["log_dirs"]);
  return (
    <Panel title={w().producers} plain>
      <Shown of={asking}>
        {(now) =>
          now.producers.length ? (
            <>
              <Grid
                label={w().producers}
                columns={columns()}
                total={now.producers.length}
                rowAt={(at) => now.producers[at]}
                keyOf={(row) => row.partition + ":" + row.producer_id}
              />
              <div class="foot-command">
                <Command text={"penstock txn producers " + name + " 0"} />
              </div>
            </>
          ) : (
            <Empty title={w().noProducers} text={w().noProducersText} command={"penstock txn producers " + name + " 0"} />
          )
        }
      </Shown>
    </Panel>
  );
}

const columns = (): Column<ProducerRow>[] => [
  { key: "partition", head: w().partition, name: true, cell: (row) => w().partition + " " + row.partition },
  { key: "id", head: w().producerId, end: true, cell: (row) => exact(row.producer_id) },
  { key: "epoch", head: w().epoch, end: true, cell: (row) => exact(row.epoch) },
  { key: "sequence", head: w().lastSequence, end: true, offPhone: true, cell: (row) => exact(row.last_sequence) },
  {
    key: "at",
    head: w().lastWrite,
    offPhone: true,
    cell: (row) => (row.last_timestamp === null ? "–" : moment(Number(row.last_timestamp), false)),
  },
  {
    key: "open",
    head: w().transaction,
    cell: (row) =>
      row.open_since === null ? (
        <span class="soft">–</span>
      ) : (
        <Badge tone="warn" mark>
          {w().openSince(exact(row.open_since))}
        </Badge>
      ),
  },
];
