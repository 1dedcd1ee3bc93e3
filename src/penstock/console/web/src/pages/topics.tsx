import type { TopicRow } from "../asking/shapes";
import { about, bytes, exact, span } from "../figures/numbers";
import { Badge } from "../parts/badge";
import { Check, Choice } from "../parts/field";
import { FilterBox } from "../parts/filter";
import { Grid, GridFoot, type Column } from "../parts/grid";
import { useSorting } from "../parts/ordered";
import { PageOf, Panel } from "../parts/page";
import { usePaged } from "../parts/paged";
import { Empty, Shown } from "../parts/shown";
import { Spark } from "../parts/spark";
import { Link } from "../routing/link";
import { asked, setQuery, to } from "../routing/place";
import { w } from "../words/words";

export function TopicsPage() {
  const sorting = useSorting("name");
  const filters = new URLSearchParams({ sort: sorting.by, desc: sorting.desc ? "1" : "0" });
  for (const name of ["q", "internal", "only"]) if (asked(name)) filters.set(name, asked(name));
  const paged = usePaged<TopicRow>("/topics?" + filters.toString(), ["metadata", "offsets"]);
  return (
    <PageOf title={w().topics}>
      <Panel plain>
        <div class="bar">
          <FilterBox label={w().filter} />
          <Choice
            label={w().only}
            value={asked("only")}
            set={(only) => setQuery({ only })}
            of={[
              ["", w().onlyAll],
              ["under_replicated", w().onlyUnder],
              ["leaderless", w().onlyLeaderless],
              ["empty", w().onlyEmpty],
            ]}
          />
          <Check on={asked("internal") === "1"} set={(on) => setQuery({ internal: on ? "1" : null })}>
            {w().showInternal}
          </Check>
        </div>
        <Shown of={paged.resource}>
          {(page) =>
            page.matching === 0 ? (
              <Empty
                title={w().noTopics}
                text={w().noTopicsText}
                command="penstock topic create orders --partitions 3"
              />
            ) : (
              <>
                <Grid
                  label={w().topics}
                  columns={columns()}
                  total={page.matching}
                  rowAt={paged.rowAt}
                  onWindow={paged.onWindow}
                  keyOf={(row) => row.name}
                  sorting={sorting}
                />
                <GridFoot shown={page.matching} total={page.total} />
              </>
            )
          }
        </Shown>
      </Panel>
    </PageOf>
  );
}

const columns = (): Column<TopicRow>[] => [
  {
    key: "name",
    head: w().name,
    name: true,
    sort: true,
    cell: (row) => (
      <>
        <Link to={to("/topics/{}/messages", row.name)}>{row.name}</Link> {row.internal && <Badge>{w().internal}</Badge>}
      </>
    ),
  },
  { key: "partitions", head: w().partitions, end: true, sort: true, cell: (row) => exact(row.partitions) },
  { key: "replication", head: w().replication, end: true, sort: true, offPhone: true, cell: (row) => row.replication },
  { key: "behind", head: w().outOfSync, sort: true, offPhone: true, cell: (row) => <Sync of={row} /> },
  { key: "records", head: w().records, end: true, sort: true, cell: (row) => exact(row.records) },
  { key: "bytes", head: w().size, end: true, sort: true, cell: (row) => bytes(row.bytes) },
  { key: "rate", head: w().rateIn, end: true, sort: true, offPhone: true, cell: (row) => about(row.rate) },
  { key: "spark", head: "", offPhone: true, cell: (row) => <Spark of={row.spark} /> },
  { key: "groups", head: w().groups, end: true, sort: true, offPhone: true, cell: (row) => exact(row.groups) },
  {
    key: "lag",
    head: w().lag,
    end: true,
    sort: true,
    offPhone: true,
    cell: (row) => (row.groups ? exact(row.lag) : "–"),
  },
  { key: "retention", head: w().retention, offPhone: true, cell: (row) => retention(row) },
];

function Sync({ of }: { of: TopicRow }) {
  if (of.leaderless)
    return (
      <Badge tone="bad" mark>
        {w().leaderless}: {exact(of.leaderless)}
      </Badge>
    );
  if (of.behind)
    return (
      <Badge tone="warn" mark>
        {exact(of.behind)}
      </Badge>
    );
  return <span class="soft">0</span>;
}

function retention(row: TopicRow): string {
  if (row.compacted) return w().compacted;
  if (row.retention_ms === null) return "–";
  return row.retention_ms === "-1" ? w().forEver : span(Number(row.retention_ms));
}
