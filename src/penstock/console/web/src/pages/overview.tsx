import { useAsked } from "../asking/resource";
import type { Overview } from "../asking/shapes";
import { about, bytes, exact, lagTime } from "../figures/numbers";
import { Mark, type Tone } from "../parts/badge";
import { Chart } from "../parts/chart";
import { Command } from "../parts/command";
import { Grid } from "../parts/grid";
import { PageOf, Panel, Tiles } from "../parts/page";
import { Empty, Shown } from "../parts/shown";
import { TrendBadge } from "../parts/trend";
import { Link } from "../routing/link";
import { to } from "../routing/place";
import { told, w } from "../words/words";
import { BrokerGrid } from "./brokers";
import { EventList } from "./events";

export function OverviewPage() {
  const overview = useAsked<Overview>("/overview", ["metadata", "offsets", "groups"]);
  return (
    <PageOf title={w().overview}>
      <Shown of={overview}>
        {(now) => (
          <div class="stack">
            <Health of={now} />
            <Tiles
              of={[
                [w().recordsIn, <Rate of={about(now.rates.records_in)} known={now.rates.records_in !== null} />],
                now.rates.records_out === null
                  ? null
                  : [w().recordsOut, <Rate of={about(now.rates.records_out)} known />],
                now.rates.bytes_in === null ? null : [w().bytesIn, <Rate of={bytes(now.rates.bytes_in)} known />],
                [w().stored, bytes(now.cluster.bytes)],
                [w().topics, <Link to="/topics">{exact(now.cluster.topics)}</Link>],
                [w().partitions, exact(now.cluster.partitions)],
                [w().groups, <Link to="/groups">{exact(now.cluster.groups)}</Link>],
              ]}
            />
            {now.cluster.topics === 0 ? (
              <Panel plain>
                <Empty
                  title={w().emptyCluster}
                  text={w().emptyClusterText}
                  command="penstock topic create orders --partitions 3"
                />
              </Panel>
            ) : (
              <Busy of={now} />
            )}
          </div>
        )}
      </Shown>
    </PageOf>
  );
}

const Rate = ({ of, known }: { of: string; known: boolean }) => (
  <>
    {of}
    {known && <small> {w().perSecond}</small>}
  </>
);

/** One sentence first; then every reason with what to do about it. */
function Health({ of }: { of: Overview }) {
  const tone: Tone = of.healthy === null ? "quiet" : of.healthy ? "good" : "bad";
  return (
    <section class={"health " + tone} aria-label={w().health}>
      <p class="row">
        <Mark tone={tone} />
        <strong>{told("health_", of.healthy === null ? "unseen" : of.healthy ? "healthy" : "", of.sentence)}</strong>
      </p>
      {!of.healthy && (
        <ul>
          {of.reasons.map((reason) => (
            <li key={reason.kind + reason.what}>
              <p>
                <strong>{told("reason_", reason.kind, reason.what)}</strong>
                {reason.items.length > 0 && ": "}
                <span class="mono">{reason.items.join(", ")}</span>
                {reason.more > 0 && " " + w().andMore(reason.more)}
              </p>
              {reason.attempt && <p class="soft small">{reason.attempt.replace(/`/g, "")}</p>}
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary>{w().asCommand}</summary>
        <Command text={of.command} />
      </details>
    </section>
  );
}

const Busy = ({ of }: { of: Overview }) => (
  <div class="columns">
    <Panel class="w7" title={w().throughput}>
      <Chart history={of.history} series={[{ key: "records_in", label: w().recordsIn }]} label={w().throughput} />
    </Panel>
    <Panel class="w5" title={w().worstLags} plain>
      {of.lags.length ? (
        <Grid
          label={w().worstLags}
          total={of.lags.length}
          rowAt={(at) => of.lags[at]}
          keyOf={(row) => row.group}
          columns={[
            {
              key: "group",
              head: w().group,
              name: true,
              cell: (row) => <Link to={to("/groups/{}", row.group)}>{row.group}</Link>,
            },
            { key: "lag", head: w().lag, end: true, cell: (row) => exact(row.lag) },
            {
              key: "lag_s",
              head: w().lagSeconds,
              end: true,
              cell: (row) => lagTime(row.lag_s),
            },
            { key: "trend", head: w().trend, cell: (row) => <TrendBadge of={row.trend} /> },
          ]}
        />
      ) : (
        <Empty title={w().noLags} />
      )}
    </Panel>
    {of.brokers.length > 0 && (
      <Panel class="w8" title={w().brokers} plain>
        <BrokerGrid of={of.brokers} />
      </Panel>
    )}
    <div class="w4 stack">
      {of.tables.length > 0 && (
        <Panel title={w().freshTables} plain>
          <Grid
            label={w().freshTables}
            total={of.tables.length}
            rowAt={(at) => of.tables[at]}
            keyOf={(row) => row.name}
            columns={[
              {
                key: "name",
                head: w().name,
                name: true,
                cell: (row) => <Link to={to("/tables/{}", row.name)}>{row.name}</Link>,
              },
              {
                key: "fresh",
                head: w().freshness,
                end: true,
                cell: (row) => lagTime(row.freshness_s),
              },
            ]}
          />
        </Panel>
      )}
      <Panel title={w().lastEvents} plain end={<Link to="/events">{w().all}</Link>}>
        {of.events.length ? <EventList of={of.events.slice(0, 8)} /> : <Empty title={w().noEvents} />}
      </Panel>
    </div>
  </div>
);
