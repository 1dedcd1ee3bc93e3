import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useAsked } from "../../asking/resource";
import type { Records } from "../../asking/shapes";
import { beginSearch, beginTail, type Search, type Tail } from "../../asking/watching";
import { Command } from "../../parts/command";
import { GridFoot } from "../../parts/grid";
import { Panel } from "../../parts/page";
import { Empty, Shown } from "../../parts/shown";
import { asked, setQuery, to } from "../../routing/place";
import { w } from "../../words/words";
import { Asking, currentAsking } from "./asking";
import { ProduceDialog } from "./produce";
import { RecordList } from "./recordList";
import { SearchProgress, TailProgress } from "./progress";

/** Records of a topic: a page of them, a search through them, or those that come. What is asked is in the address. */
export function MessagesTab({ name, partitions, command }: { name: string; partitions: number; command?: string }) {
  const mode = asked("mode", "page");
  const producing = useSignal(false);
  return (
    <div class="stack">
      <Panel plain>
        <Asking partitions={partitions} onProduce={() => (producing.value = true)} />
        {mode === "tail" ? (
          <Tailing name={name} command={command} />
        ) : mode === "search" ? (
          <Searching name={name} />
        ) : (
          <Paging name={name} command={command} />
        )}
      </Panel>
      {producing.value && (
        <ProduceDialog name={name} partitions={partitions} onClose={() => (producing.value = false)} />
      )}
    </div>
  );
}

function Paging({ name, command }: { name: string; command: string | undefined }) {
  const { from, partition, isolation } = currentAsking();
  const filters = new URLSearchParams({ from, limit: asked("limit", "50") });
  if (partition) filters.set("partition", partition);
  if (isolation) filters.set("isolation", isolation);
  const cursor = asked("cursor");
  if (cursor) filters.set("cursor", cursor);
  if (asked("back") === "1") filters.set("back", "1");
  const page = useAsked<Records>(to("/topics/{}/records", name) + "?" + filters.toString());
  const turn = (next: string | null, back: boolean): void =>
    setQuery({ cursor: next, back: back ? "1" : null, at: null });
  return (
    <Shown of={page}>
      {(now) => (
        <>
          {now.records.length ? (
            <RecordList name={name} records={now.records} />
          ) : (
            <Empty
              title={w().noRecords}
              text={from === "newest" ? w().noRecordsText : w().noRecordsHere}
              command={from === "newest" ? command : undefined}
            />
          )}
          <GridFoot shown={now.records.length} total={now.records.length}>
            <span>{w().orderNote}</span>
            <span class="row">
              <button
                type="button"
                class="button tiny"
                disabled={now.previous === null}
                onClick={() => turn(now.previous, true)}
              >
                ← {w().older}
              </button>
              <button
                type="button"
                class="button tiny"
                disabled={now.next === null || now.more === false}
                onClick={() => turn(now.next, false)}
              >
                {w().newer} →
              </button>
              <button type="button" class="button tiny" onClick={page.again}>
                {w().refresh}
              </button>
            </span>
          </GridFoot>
          {now.command && (
            <div class="foot-command">
              <Command text={now.command} />
            </div>
          )}
        </>
      )}
    </Shown>
  );
}

/** Something that runs as long as this part of the page is shown and the same is asked for. */
function useRunning<T extends { stop: () => void }>(begin: () => T, key: string): T | null {
  const running = useSignal<T | null>(null);
  const last = useRef<T | null>(null);
  useEffect(() => {
    const begun = begin();
    last.current = begun;
    running.value = begun;
    return () => begun.stop();
  }, [key]);
  return running.value;
}

function body(name: string): {
  topic: string;
  partitions: number[] | null;
  where: string | null;
  contains: string | null;
} {
  const { partition, where, contains } = currentAsking();
  return {
    topic: name,
    partitions: partition ? partition.split(",").map(Number) : null,
    where: where || null,
    contains: contains || null,
  };
}

function Tailing({ name, command }: { name: string; command: string | undefined }) {
  const asking = body(name);
  const tail = useRunning<Tail>(() => beginTail(asking), JSON.stringify(asking));
  if (!tail) return null;
  return (
    <>
      <TailProgress of={tail} />
      {tail.records.value.length ? (
        <RecordList name={name} records={tail.records.value} live />
      ) : (
        <Empty title={w().waitingRecords} text={w().waitingRecordsText} command={command} />
      )}
    </>
  );
}

function Searching({ name }: { name: string }) {
  const { from, until, isolation } = currentAsking();
  const asking = {
    ...body(name),
    from: from === "newest" ? "oldest" : from,
    to: until || "end",
    ...(isolation ? { isolation } : {}),
  };
  const search = useRunning<Search>(() => beginSearch(asking), JSON.stringify(asking) + asked("run"));
  if (!search) return null;
  return (
    <>
      <SearchProgress of={search} />
      {search.hits.value.length ? (
        <RecordList name={name} records={search.hits.value} />
      ) : (
        !search.running.value && !search.refusal.value && <Empty title={w().noHits} text={w().noHitsText} />
      )}
    </>
  );
}
