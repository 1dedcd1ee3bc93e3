import { useAsked } from "../asking/resource";
import type { Broker, BrokerAnswer } from "../asking/shapes";
import { bytes, exact, percent } from "../figures/numbers";
import { Badge } from "../parts/badge";
import { Grid, type Column } from "../parts/grid";
import { PageOf, Panel, Tiles } from "../parts/page";
import { Shown } from "../parts/shown";
import { Link } from "../routing/link";
import { to } from "../routing/place";
import { w } from "../words/words";
import { ConfigTab } from "./topic/config";

export const BrokerGrid = ({ of }: { of: Broker[] }) => (
  <Grid
    label={w().brokers}
    total={of.length}
    rowAt={(at) => of[at]}
    keyOf={(row) => String(row.id)}
    columns={columns()}
  />
);

export const BrokerState = ({ of }: { of: Broker }) => (
  <span class="row">
    <Badge tone={of.alive ? "good" : "bad"} mark>
      {of.alive ? w().up : w().down}
    </Badge>
    {of.controller && <Badge tone="info">{w().controller}</Badge>}
  </span>
);

const columns = (): Column<Broker>[] => [
  {
    key: "id",
    head: w().brokerWord,
    name: true,
    cell: (row) => <Link to={to("/brokers/{}", row.id)}>{w().broker(row.id)}</Link>,
  },
  { key: "state", head: w().state, cell: (row) => <BrokerState of={row} /> },
  {
    key: "address",
    head: w().address,
    offPhone: true,
    cell: (row) => <span class="mono">{row.host + ":" + row.port}</span>,
  },
  { key: "rack", head: w().rack, offPhone: true, cell: (row) => row.rack ?? <span class="soft">–</span> },
  { key: "leaders", head: w().leaders, end: true, cell: (row) => exact(row.leaders) },
  { key: "replicas", head: w().replicas, end: true, offPhone: true, cell: (row) => exact(row.replicas) },
  {
    key: "behind",
    head: w().outOfSync,
    end: true,
    cell: (row) => (row.behind ? <Badge tone="warn">{exact(row.behind)}</Badge> : "0"),
  },
  { key: "bytes", head: w().stored, end: true, cell: (row) => bytes(row.bytes) },
];

export function BrokerPage({ id }: { id: string }) {
  const broker = useAsked<BrokerAnswer>(to("/brokers/{}", id), ["metadata", "log_dirs"]);
  return (
    <PageOf
      title={w().broker(id)}
      crumb={{ to: "/map", text: w().map }}
      beside={broker.seen.value.data && <BrokerState of={broker.seen.value.data} />}
    >
      <Shown of={broker}>
        {(now) => (
          <div class="stack">
            <Tiles
              of={[
                [w().address, <span class="mono">{now.host + ":" + now.port}</span>],
                [w().rack, now.rack ?? "–"],
                [w().leaders, exact(now.leaders)],
                [w().replicas, exact(now.replicas)],
                [w().outOfSync, exact(now.behind)],
                [w().stored, bytes(now.bytes)],
              ]}
            />
            <div class="columns">
              <Panel class="w7" title={w().directories} plain>
                <Directories of={now} />
              </Panel>
              <Panel class="w5" title={w().features} plain>
                <Features of={now} />
              </Panel>
            </div>
            <h2 class="section">{w().config}</h2>
            <ConfigTab path={to("/brokers/{}/config", id)} />
          </div>
        )}
      </Shown>
    </PageOf>
  );
}

const Directories = ({ of }: { of: BrokerAnswer }) => (
  <Grid
    label={w().directories}
    total={(of.dirs ?? []).length}
    rowAt={(at) => of.dirs?.[at]}
    keyOf={(row) => row.path}
    columns={[
      { key: "path", head: w().path, name: true, cell: (row) => <span class="mono">{row.path}</span> },
      { key: "used", head: w().stored, end: true, cell: (row) => bytes(row.used) },
      {
        key: "free",
        head: w().free,
        end: true,
        cell: (row) => {
          if (row.error) return <Badge tone="bad">{row.error}</Badge>;
          if (row.total === null || row.usable === null) return "–";
          const full = 1 - Number(row.usable) / Number(row.total);
          return (
            <span class="nowrap">
              <span class={"fill" + (full > 0.9 ? " bad" : "")}>
                <i style={{ width: Math.round(full * 100) + "%" }} />
              </span>{" "}
              {bytes(row.usable)} ({percent(1 - full)})
            </span>
          );
        },
      },
    ]}
  />
);

const Features = ({ of }: { of: BrokerAnswer }) => (
  <Grid
    label={w().features}
    total={of.features.length}
    rowAt={(at) => of.features[at]}
    keyOf={(row) => row.name}
    columns={[
      { key: "name", head: w().name, name: true, cell: (row) => row.name },
      { key: "finalized", head: w().inUse, end: true, cell: (row) => row.finalized ?? "–" },
      { key: "supported", head: w().supported, end: true, cell: (row) => row.lowest + " – " + row.highest },
    ]}
  />
);
