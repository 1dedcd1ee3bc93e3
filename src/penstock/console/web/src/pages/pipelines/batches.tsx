import type { PipelineAnswer } from "../../asking/shapes";
import { exact, moment, span } from "../../figures/numbers";
import { Grid, type Column } from "../../parts/grid";
import { Panel } from "../../parts/page";
import { Empty } from "../../parts/shown";
import { w } from "../../words/words";

type Batch = NonNullable<PipelineAnswer["batches"]>[number];

/** What the last batches took, and on what: the parts as a bar, and in words for each. */
export function Batches({ of }: { of: Batch[] }) {
  const longest = of.reduce((most, batch) => Math.max(most, batch.duration_ms ?? 0), 1);
  return (
    <Panel title={w().batches} plain>
      {of.length ? (
        <Grid
          label={w().batches}
          columns={columns(longest)}
          total={of.length}
          rowAt={(at) => of[at]}
          keyOf={(row) => row.run + row.flow + row.id}
        />
      ) : (
        <Empty title={w().noBatches} />
      )}
    </Panel>
  );
}

const SHADES = 5;

const columns = (longest: number): Column<Batch>[] => [
  { key: "id", head: w().batch, name: true, cell: (row) => exact(row.id) },
  { key: "flow", head: w().flow, offPhone: true, cell: (row) => row.flow },
  { key: "at", head: w().time, cell: (row) => moment(row.at_ms, false) },
  { key: "rows", head: w().rowsWord, end: true, cell: (row) => exact(row.rows) },
  { key: "took", head: w().took, end: true, cell: (row) => span(row.duration_ms) },
  {
    key: "parts",
    head: w().onWhat,
    offPhone: true,
    cell: (row) => {
      const parts = Object.entries(row.parts ?? {})
        .filter(([name]) => name !== "triggerExecution")
        .sort((one, other) => other[1] - one[1]);
      return (
        <span class="parts" title={parts.map(([name, ms]) => name + " " + span(ms)).join(", ")}>
          <span class="bars" aria-hidden="true">
            {parts.map(([name, ms], at) => (
              <i key={name} class={"p" + (at % SHADES)} style={{ width: (ms / longest) * 160 + "px" }} />
            ))}
          </span>
          <span class="small soft">
            {parts
              .slice(0, 2)
              .map(([name, ms]) => name + " " + span(ms))
              .join(" · ")}
          </span>
        </span>
      );
    },
  },
];
