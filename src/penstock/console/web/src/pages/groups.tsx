import type { GroupRow } from "../asking/shapes";
import { exact, lagTime } from "../figures/numbers";
import { Choice } from "../parts/field";
import { FilterBox } from "../parts/filter";
import { Grid, GridFoot, type Column } from "../parts/grid";
import { useSorting } from "../parts/ordered";
import { PageOf, Panel } from "../parts/page";
import { usePaged } from "../parts/paged";
import { Empty, Shown } from "../parts/shown";
import { Spark } from "../parts/spark";
import { GroupState } from "../parts/state";
import { TrendBadge } from "../parts/trend";
import { Link } from "../routing/link";
import { asked, setQuery, to } from "../routing/place";
import { told, w } from "../words/words";
import { Transactions } from "./transactions";

const STATES = ["Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead"];

export function GroupsPage() {
  const sorting = useSorting("group");
  const filters = new URLSearchParams({
    sort: sorting.by === "group" ? "name" : sorting.by,
    desc: sorting.desc ? "1" : "0",
  });
  for (const name of ["q", "state"]) if (asked(name)) filters.set(name, asked(name));
  const paged = usePaged<GroupRow>("/groups?" + filters.toString(), ["groups"]);
  return (
    <PageOf title={w().groups}>
      <div class="stack">
        <Panel plain>
          <div class="bar">
            <FilterBox label={w().filter} />
            <Choice
              label={w().state}
              value={asked("state")}
              set={(state) => setQuery({ state })}
              of={[["", w().anyState], ...STATES.map((state) => [state, told("state_", state, state)] as const)]}
            />
          </div>
          <Shown of={paged.resource}>
            {(page) =>
              page.matching === 0 ? (
                <Empty title={w().noGroups} text={w().noGroupsText} command="penstock consume orders --group app" />
              ) : (
                <>
                  <Grid
                    label={w().groups}
                    columns={columns()}
                    total={page.matching}
                    rowAt={paged.rowAt}
                    onWindow={paged.onWindow}
                    keyOf={(row) => row.group}
                    sorting={sorting}
                  />
                  <GridFoot shown={page.matching} total={page.total} />
                </>
              )
            }
          </Shown>
        </Panel>
        <Transactions />
      </div>
    </PageOf>
  );
}

const columns = (): Column<GroupRow>[] => [
  {
    key: "group",
    head: w().group,
    name: true,
    sort: true,
    cell: (row) => <Link to={to("/groups/{}", row.group)}>{row.group}</Link>,
  },
  { key: "state", head: w().state, sort: true, cell: (row) => <GroupState of={row.state} /> },
  { key: "members", head: w().members, end: true, sort: true, cell: (row) => exact(row.members) },
  { key: "lag", head: w().lag, end: true, sort: true, cell: (row) => (row.unseen === null ? exact(row.lag) : <span title={row.unseen}>{exact(row.lag)} *</span>) },
  {
    key: "lag_s",
    head: w().lagSeconds,
    end: true,
    sort: true,
    cell: (row) => lagTime(row.lag_s),
  },
  { key: "trend", head: w().trend, offPhone: true, cell: (row) => <TrendBadge of={row.trend} /> },
  { key: "spark", head: w().lastHour, mute: true, offPhone: true, cell: (row) => <Spark of={row.spark} /> },
  {
    key: "topics",
    head: w().topics,
    offPhone: true,
    cell: (row) => (
      <>
        {row.topics.slice(0, 3).map((name, at) => (
          <span key={name}>
            {at > 0 && ", "}
            <Link to={to("/topics/{}/consumers", name)}>{name}</Link>
          </span>
        ))}
        {row.topics.length > 3 && " " + w().andMore(row.topics.length - 3)}
      </>
    ),
  },
  { key: "type", head: w().type, offPhone: true, cell: (row) => <span class="soft">{row.type}</span> },
];
