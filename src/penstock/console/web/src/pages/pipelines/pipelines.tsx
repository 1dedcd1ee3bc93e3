import { useAsked } from "../../asking/resource";
import type { Page, PipelineRow } from "../../asking/shapes";
import { about, exact, lagTime, span } from "../../figures/numbers";
import { Badge, type Tone } from "../../parts/badge";
import { Grid, GridFoot, type Column } from "../../parts/grid";
import { PageOf, Panel } from "../../parts/page";
import { Empty, Shown } from "../../parts/shown";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { told, w } from "../../words/words";

export function PipelinesPage() {
  const asking = useAsked<Page<PipelineRow>>("/pipelines?limit=1000", ["offsets"]);
  return (
    <PageOf title={w().pipelines}>
      <Panel plain>
        <Shown of={asking}>
          {(now) =>
            now.items.length ? (
              <>
                <Grid
                  label={w().pipelines}
                  columns={columns()}
                  total={now.items.length}
                  rowAt={(at) => now.items[at]}
                  keyOf={(row) => row.name}
                />
                <GridFoot shown={now.items.length} total={now.items.length} />
              </>
            ) : (
              <Empty title={w().noPipelines} text={w().noPipelinesText} command="penstock pipeline init" />
            )
          }
        </Shown>
      </Panel>
    </PageOf>
  );
}

const TONES: Record<string, Tone> = { running: "good", failed: "bad", stopped: "quiet", unknown: "info" };

export const PipelineState = ({ of }: { of: string }) => (
  <Badge tone={TONES[of] ?? "info"} mark>
    {told("pipeline_", of, of)}
  </Badge>
);

const columns = (): Column<PipelineRow>[] => [
  {
    key: "name",
    head: w().name,
    name: true,
    cell: (row) => <Link to={to("/pipelines/{}", row.name)}>{row.name}</Link>,
  },
  { key: "state", head: w().state, cell: (row) => <PipelineState of={row.state} /> },
  { key: "rate", head: w().rowsPerS, end: true, cell: (row) => about(row.rows_per_s) },
  { key: "lag", head: w().lag, end: true, cell: (row) => exact(row.lag) },
  { key: "fresh", head: w().freshness, end: true, cell: (row) => lagTime(row.freshness_s) },
  {
    key: "restarts",
    head: w().restarts,
    end: true,
    offPhone: true,
    cell: (row) => (row.restarts ? <Badge tone="warn">{exact(row.restarts)}</Badge> : exact(row.restarts)),
  },
  { key: "batch", head: w().batchTime, end: true, offPhone: true, cell: (row) => span(row.batch_ms) },
  {
    key: "dead",
    head: w().deadLetters,
    end: true,
    cell: (row) => (row.dead && row.dead !== "0" ? <Badge tone="warn">{exact(row.dead)}</Badge> : exact(row.dead)),
  },
  {
    key: "seen",
    head: w().heardFrom,
    end: true,
    offPhone: true,
    cell: (row) => (row.seen_ms === null ? "–" : w().asOf(span(Math.max(0, Date.now() - row.seen_ms)))),
  },
];
