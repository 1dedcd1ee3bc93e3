import { useAsked } from "../../asking/resource";
import { session } from "../../asking/session";
import type { TableAnswer } from "../../asking/shapes";
import { bytes, exact, lagTime, moment } from "../../figures/numbers";
import { Action, Opens } from "../../parts/action";
import { Badge } from "../../parts/badge";
import { Command } from "../../parts/command";
import { Grid } from "../../parts/grid";
import { PageOf, Panel, Tiles } from "../../parts/page";
import { Empty, Shown } from "../../parts/shown";
import { Link } from "../../routing/link";
import { to } from "../../routing/place";
import { w } from "../../words/words";
import { SqlBox } from "./sql";

export function TablePage({ name }: { name: string }) {
  const asking = useAsked<TableAnswer>(to("/tables/{}", name), ["offsets"]);
  const now = asking.seen.value.data;
  return (
    <PageOf
      title={name}
      crumb={{ to: "/tables", text: w().tables }}
      beside={now && <Badge>{now.kind}</Badge>}
      acts={now && <Audit name={name} />}
    >
      <Shown of={asking}>
        {(of) => (
          <div class="stack">
            <Tiles
              of={[
                [w().version, exact(of.version)],
                [w().rowsWord, exact(of.rows)],
                [w().files, exact(of.files)],
                [w().size, bytes(of.bytes)],
                [w().freshness, lagTime(of.freshness_s)],
                [w().deadLetters, exact(of.dead)],
              ]}
            />
            {of.problem && (
              <div class="refused" role="alert">
                <strong>{of.problem}</strong>
              </div>
            )}
            {(of.committed_ms !== null || (of.pipelines ?? []).length > 0) && (
              <p class="row small soft">
                {of.committed_ms !== null && <span>{w().committed + " " + moment(of.committed_ms, false)}</span>}
                {(of.pipelines ?? []).length > 0 && <span>{w().pipelines}</span>}
                {of.pipelines?.map((pipeline) => (
                  <Link key={pipeline} to={to("/pipelines/{}", pipeline)}>
                    {pipeline}
                  </Link>
                ))}
              </p>
            )}
            {session.value?.features.sql && <SqlBox first={name} />}
            <div class="columns">
              <Panel class="w7" title={w().versions} plain>
                <Versions of={of} />
              </Panel>
              <div class="w5 stack">
                <Panel title={w().columns} plain>
                  <Columns of={of} />
                </Panel>
                <Panel title={w().ranges} plain>
                  <Ranges of={of} />
                </Panel>
              </div>
            </div>
            <Command text={of.command ?? `penstock lake show ${of.path}`} />
          </div>
        )}
      </Shown>
    </PageOf>
  );
}

interface Verdict {
  sound?: boolean;
  text?: string;
  sentence?: string;
  findings?: string[];
  checks?: { name: string; outcome: string; detail: string }[];
}

/** Holds the table's rows and ranges against its own history: nothing lost, nothing twice. */
const Audit = ({ name }: { name: string }) => (
  <Opens text={w().audit}>
    {(close) => (
      <Action<Verdict>
        title={w().auditOf(name)}
        verb={w().audit}
        planned={false}
        change={{ method: "POST", path: to("/tables/{}/audit", name), body: {} }}
        done={(answer) => {
          const verdict = (answer.done ?? answer) as Verdict;
          return (
            <>
              {verdict.sentence ?? verdict.text}
              {(verdict.checks ?? []).map((check) => (
                <span key={check.name}>
                  {check.name}: {check.outcome}
                </span>
              ))}
              {(verdict.findings ?? []).map((line) => (
                <span key={line}>{line}</span>
              ))}
            </>
          );
        }}
        onClose={close}
      >
        <p>{w().auditText}</p>
      </Action>
    )}
  </Opens>
);

function Versions({ of }: { of: TableAnswer }) {
  const rows = of.versions ?? [];
  if (!rows.length) return <Empty title={w().noVersions} />;
  return (
    <Grid
      label={w().versions}
      total={rows.length}
      rowAt={(at) => rows[at]}
      keyOf={(row) => row.version}
      columns={[
        { key: "version", head: w().version, name: true, cell: (row) => exact(row.version) },
        { key: "at", head: w().time, cell: (row) => (row.at_ms === null ? "–" : moment(row.at_ms, false)) },
        { key: "operation", head: w().operation, cell: (row) => row.operation ?? "–" },
        { key: "rows", head: w().rowsWord, end: true, cell: (row) => exact(row.rows) },
        { key: "files", head: w().files, end: true, offPhone: true, cell: (row) => exact(row.files) },
        { key: "bytes", head: w().size, end: true, offPhone: true, cell: (row) => bytes(row.bytes) },
        { key: "dead", head: w().deadLetters, end: true, offPhone: true, cell: (row) => exact(row.dead) },
      ]}
    />
  );
}

const Columns = ({ of }: { of: TableAnswer }) => (
  <Grid
    label={w().columns}
    total={(of.schema ?? []).length}
    rowAt={(at) => of.schema?.[at]}
    keyOf={(row) => row.name}
    columns={[
      { key: "name", head: w().name, name: true, cell: (row) => <span class="mono">{row.name}</span> },
      { key: "type", head: w().type, cell: (row) => <span class="mono">{row.type}</span> },
      { key: "null", head: "null", cell: (row) => (row.nullable ? w().yes : w().no) },
    ]}
  />
);

function Ranges({ of }: { of: TableAnswer }) {
  const rows = of.ranges ?? [];
  if (!rows.length) return <Empty title={w().noRanges} />;
  return (
    <Grid
      label={w().ranges}
      total={rows.length}
      rowAt={(at) => rows[at]}
      keyOf={(row) => row.topic + "-" + row.partition + "-" + row.start}
      columns={[
        {
          key: "from",
          head: w().partition,
          name: true,
          cell: (row) => (
            <Link to={to("/topics/{}/messages", row.topic) + "?partition=" + row.partition}>
              {row.topic + "-" + row.partition}
            </Link>
          ),
        },
        { key: "start", head: w().start, end: true, cell: (row) => exact(row.start) },
        { key: "end", head: w().end, end: true, cell: (row) => exact(row.end) },
        { key: "lag", head: w().lag, end: true, cell: (row) => exact(row.lag) },
      ]}
    />
  );
}
