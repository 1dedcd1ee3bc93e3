import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { asRefusal, ask, type Refusal } from "../../asking/ask";
import type { SqlAnswer } from "../../asking/shapes";
import { span } from "../../figures/numbers";
import { Badge } from "../../parts/badge";
import { Command } from "../../parts/command";
import { Text } from "../../parts/field";
import { Grid, GridFoot, type Column } from "../../parts/grid";
import { Panel } from "../../parts/page";
import { Refused } from "../../parts/shown";
import { w } from "../../words/words";

/** Questions to tables, in SQL; every cell comes as the text that it is, so no number is rounded. */
export function SqlBox({ first }: { first: string }) {
  const query = useSignal(`SELECT * FROM "${first}" LIMIT 100`);
  const answer = useSignal<SqlAnswer | null>(null);
  const refusal = useSignal<Refusal | null>(null);
  const running = useSignal<AbortController | null>(null);
  const last = useRef<AbortController | null>(null);
  useEffect(() => () => last.current?.abort(), []);
  const run = async (): Promise<void> => {
    if (running.peek()) return;
    const mine = (last.current = running.value = new AbortController());
    refusal.value = null;
    try {
      answer.value = await ask<SqlAnswer>("/sql", {
        method: "POST",
        body: { query: query.value },
        signal: mine.signal,
      });
    } catch (error) {
      if (!mine.signal.aborted) refusal.value = asRefusal(error);
    } finally {
      running.value = null;
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.shiftKey || event.metaKey)) return;
    event.preventDefault();
    void run();
  };
  const now = answer.value;
  return (
    <Panel title="SQL" plain>
      <div class="sql" onKeyDown={pressed}>
        <Text label="SQL" rows={4} value={query.value} set={(next) => (query.value = next)} />
        <div class="row spread">
          <span class="small soft">{w().sqlNote}</span>
          {running.value ? (
            <button type="button" class="button" onClick={() => running.value?.abort()}>
              {w().cancel}
            </button>
          ) : (
            <button type="button" class="button main" onClick={() => void run()}>
              {w().run} <kbd>Ctrl ↵</kbd>
            </button>
          )}
        </div>
        {refusal.value && <Refused refusal={refusal.value} />}
      </div>
      {now && (
        <>
          <Grid
            label={w().answer}
            columns={columnsOf(now)}
            total={now.rows.length}
            rowAt={(at) => (now.rows[at] ? { at, cells: now.rows[at] } : undefined)}
            keyOf={(row) => String(row.at)}
          />
          <GridFoot shown={now.rows.length} total={now.rows.length}>
            <span class="row">
              {now.cut && <Badge tone="warn">{w().sqlCut}</Badge>}
              {span(now.elapsed_ms)}
            </span>
          </GridFoot>
          <div class="foot-command">
            <Command text={now.command} />
          </div>
        </>
      )}
    </Panel>
  );
}

interface Row {
  at: number;
  cells: (string | null)[];
}

const NUMBERS = /INT|DECIMAL|DOUBLE|FLOAT|REAL/i;

const columnsOf = (answer: SqlAnswer): Column<Row>[] =>
  answer.columns.map((column, at) => ({
    key: column.name + at,
    head: column.name,
    end: NUMBERS.test(column.type),
    name: at === 0,
    class: "cell",
    cell: (row) => {
      const text = row.cells[at];
      return text === null || text === undefined ? (
        <span class="soft">null</span>
      ) : (
        <span title={text.length > 60 ? text : undefined}>{text}</span>
      );
    },
  }));
