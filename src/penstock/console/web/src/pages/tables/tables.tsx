import { useAsked } from "../../asking/resource";
import { session } from "../../asking/session";
import type { Page, TableRow } from "../../asking/shapes";
import { bytes, exact, lagTime } from "../../figures/numbers";
import { Badge } from "../../parts/badge";
import { Grid, GridFoot, type Column } from "../../parts/grid";
import { PageOf, Panel } from "../../parts/page";
import { Empty, Shown } from "../../parts/shown";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { w } from "../../words/words";
import { SqlBox } from "./sql";

export function TablesPage() {
  const asking = useAsked<Page<TableRow> & { command: string }>("/tables?limit=1000", ["offsets"]);
  return (
    <PageOf title={w().tables}>
      <div class="stack">
        <Panel plain>
          <Shown of={asking}>
            {(now) =>
              now.items.length ? (
                <>
                  <Grid
                    label={w().tables}
                    columns={columns()}
                    total={now.items.length}
                    rowAt={(at) => now.items[at]}
                    keyOf={(row) => row.name}
                  />
                  <GridFoot shown={now.items.length} total={now.items.length} />
                </>
              ) : (
                <Empty title={w().noTables} text={w().noTablesText} command={now.command} />
              )
            }
          </Shown>
        </Panel>
        {session.value?.features.sql && (asking.seen.value.data?.items.length ?? 0) > 0 && (
          <SqlBox
           
            first={asking.seen.value.data?.items[0]?.name ?? ""}
          />
        )}
      </div>
    </PageOf>
  );
}

const Named = ({ of }: { of: TableRow }) => (
  <>
    <Link to={to("/tables/{}", of.name)}>{of.name}</Link>
    {of.problem && (
      <>
        {" "}
        <Badge tone="bad" mark>
          {of.problem}
        </Badge>
      </>
    )}
  </>
);

const columns = (): Column<TableRow>[] => [
  { key: "name", head: w().name, name: true, cell: (row) => <Named of={row} /> },
  { key: "kind", head: w().type, cell: (row) => <Badge>{row.kind}</Badge> },
  { key: "version", head: w().version, end: true, cell: (row) => exact(row.version) },
  { key: "rows", head: w().rowsWord, end: true, cell: (row) => exact(row.rows) },
  { key: "files", head: w().files, end: true, offPhone: true, cell: (row) => exact(row.files) },
  { key: "bytes", head: w().size, end: true, cell: (row) => bytes(row.bytes) },
  { key: "fresh", head: w().freshness, end: true, cell: (row) => lagTime(row.freshness_s) },
  {
    key: "from",
    head: w().filledFrom,
    offPhone: true,
    cell: (row) =>
      row.feeds_from.map((topic, at) => (
        <span key={topic}>
          {at > 0 && ", "}
          <Link to={to("/topics/{}/messages", topic)}>{topic}</Link>
        </span>
      )),
  },
];
