import { useAsked } from "../asking/resource";
import type { AgentFile, AgentInput, AgentRow, Page } from "../asking/shapes";
import { about, bytes, exact } from "../figures/numbers";
import { Badge } from "../parts/badge";
import { Command } from "../parts/command";
import { Grid, type Column } from "../parts/grid";
import { PageOf, Panel } from "../parts/page";
import { Empty, Shown } from "../parts/shown";
import { told, w } from "../words/words";

/** What collects logs, and how far each file of it was read. */
export function AgentsPage() {
  const asking = useAsked<Page<AgentRow>>("/agents?limit=1000", ["offsets"]);
  return (
    <PageOf title={w().agents}>
      <Shown of={asking}>
        {(now) =>
          now.items.length ? (
            <div class="stack">
              {now.items.map((agent) => (
                <AgentPanel key={agent.name + (agent.address ?? agent.machine ?? "")} of={agent} />
              ))}
            </div>
          ) : (
            <Panel plain>
              <Empty
                title={w().noAgents}
                text={w().noAgentsText}
                command="penstock console --agent http://localhost:9645"
              />
            </Panel>
          )
        }
      </Shown>
    </PageOf>
  );
}

const AgentPanel = ({ of }: { of: AgentRow }) => (
  <Panel
    title={of.name}
    plain
    end={
      <span class="row small soft">
        <Badge tone={of.state === "running" || of.state === "ok" ? "good" : "warn"} mark>
          {told("agent_", of.state, of.state)}
        </Badge>
        {of.address && <span class="mono">{of.address}</span>}
        {of.machine && <span class="mono">{of.machine}</span>}
        {of.behind !== null && <span>{w().behindBytes(bytes(of.behind))}</span>}
        {of.spool && of.spool !== "0" && <span>{w().spooled(bytes(of.spool))}</span>}
      </span>
    }
  >
    {of.error && (
      <div class="refused mild" role="alert">
        <span>{of.error}</span>
      </div>
    )}
    {of.inputs.length > 0 && (
      <Grid
        label={w().inputs}
        columns={inputs()}
        total={of.inputs.length}
        rowAt={(at) => of.inputs[at]}
        keyOf={(row) => row.name}
      />
    )}
    {of.files.length > 0 && (
      <Grid
        label={w().files}
        columns={files()}
        total={of.files.length}
        rowAt={(at) => of.files[at]}
        keyOf={(row) => row.input + row.path}
      />
    )}
    {of.command && (
      <div class="foot-command">
        <Command text={of.command} />
      </div>
    )}
  </Panel>
);

const inputs = (): Column<AgentInput>[] => [
  { key: "name", head: w().input, name: true, cell: (row) => row.name },
  { key: "type", head: w().type, cell: (row) => row.type ?? "–" },
  { key: "events", head: w().events, end: true, cell: (row) => exact(row.events) },
  { key: "rate", head: w().rateIn, end: true, cell: (row) => about(row.rate) },
  { key: "behind", head: w().lag, end: true, cell: (row) => bytes(row.behind) },
  { key: "dropped", head: w().dropped, end: true, offPhone: true, cell: (row) => exact(row.dropped) },
  {
    key: "error",
    head: w().lastError,
    wrap: true,
    offPhone: true,
    cell: (row) => (row.error ? <Badge tone="bad">{row.error}</Badge> : <span class="soft">–</span>),
  },
];

const files = (): Column<AgentFile>[] => [
  { key: "path", head: w().file, name: true, cell: (row) => <span class="mono">{row.path}</span> },
  { key: "position", head: w().position, end: true, cell: (row) => exact(row.position) },
  { key: "size", head: w().size, end: true, cell: (row) => exact(row.size) },
  {
    key: "behind",
    head: w().lag,
    end: true,
    cell: (row) =>
      row.position === null || row.size === null ? "–" : bytes(row.behind ?? BigInt(row.size) - BigInt(row.position)),
  },
];
