// A tail or a search of this tab: told to the server, heard in the stream, and begun again when the stream was cut.
import { signal, type Signal } from "@preact/signals";
import { ask, asRefusal, Refusal } from "./ask";
import type { SearchTold, Stored, TailTold } from "./shapes";
import { hear, streamOpen, tab } from "./stream";

const begin = (body: object): Promise<{ id: string }> => ask(`/tabs/${tab}/subscriptions`, { method: "POST", body });

function end(id: string): void {
  // A stream that is gone has taken its subscriptions with it.
  ask(`/tabs/${tab}/subscriptions/${id}`, { method: "DELETE" }).catch(() => undefined);
}

/** A subscription needs the stream that its answers come in. */
function whenOpen(then: () => void): void {
  if (streamOpen.peek()) return then();
  const wait = streamOpen.subscribe((open) => {
    if (!open) return;
    queueMicrotask(() => wait());
    then();
  });
}

const KEPT = 2_000;

export interface Tail {
  records: Signal<Stored[]>;
  told: Signal<TailTold | null>;
  paused: Signal<boolean>;
  /** How many came while nobody looked. */
  missed: Signal<number>;
  cuts: Signal<number>;
  /** Why nothing comes at the moment; it is tried again, less and less often. */
  refusal: Signal<Refusal | null>;
  stop: () => void;
}

const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** A tail says every five seconds that it lives. */
const SILENT_MS = 20_000;

/** Newest first, at most 2,000; while it is paused the page stands still and what comes is counted. */
export function beginTail(body: object): Tail {
  const tail: Tail = {
    records: signal([]),
    told: signal(null),
    paused: signal(false),
    missed: signal(0),
    cuts: signal(0),
    refusal: signal(null),
    stop: () => undefined,
  };
  let id: string | null = null;
  let over = false;
  const early: TailTold[] = [];
  let pauseMs = RETRY_MS;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let silent: ReturnType<typeof setTimeout> | undefined;
  const lost = (why: Refusal): void => {
    clearTimeout(silent);
    clearTimeout(retry);
    if (over) return;
    if (id !== null) end(id);
    id = null;
    tail.refusal.value = why;
    retry = setTimeout(() => streamOpen.peek() && start(), pauseMs);
    pauseMs = Math.min(pauseMs * 2, RETRY_MAX_MS);
  };
  const take = (told: TailTold): void => {
    if (told.error) return lost(new Refusal(0, told.error.code, told.error.message, told.error.attempt));
    tail.refusal.value = null;
    clearTimeout(silent);
    silent = setTimeout(() => lost(new Refusal(0, "tail_silent", "", "")), SILENT_MS);
    // One that breaks off at once again was not healed by its first word.
    if (told.records.length) pauseMs = RETRY_MS;
    tail.told.value = told;
    if (tail.paused.peek()) {
      tail.missed.value += told.records.length;
      return;
    }
    if (told.records.length)
      tail.records.value = [...[...told.records].reverse(), ...tail.records.peek()].slice(0, KEPT);
  };
  const deaf = hear("tail", (told) => {
    if (id === null) early.push(told);
    else if (told.id === id) take(told);
  });
  const start = (): void => {
    id = null;
    begin({ kind: "tail", ...body }).then(
      (begun) => {
        if (over) return end(begun.id);
        id = begun.id;
        for (const told of early.splice(0)) if (told.id === id) take(told);
      },
      (error) => lost(asRefusal(error)),
    );
  };
  let opened = false;
  const watch = streamOpen.subscribe((open) => {
    clearTimeout(silent);
    clearTimeout(retry);
    if (over || !open) return;
    if (opened) tail.cuts.value += 1;
    opened = true;
    start();
  });
  tail.stop = () => {
    over = true;
    clearTimeout(silent);
    clearTimeout(retry);
    watch();
    deaf();
    if (id !== null) end(id);
  };
  return tail;
}

export interface Search {
  hits: Signal<Stored[]>;
  told: Signal<SearchTold | null>;
  running: Signal<boolean>;
  refusal: Signal<Refusal | null>;
  goOn: () => void;
  stop: () => void;
}

/** Runs until it has found enough, looked at enough, or is stopped; then it can go on from where it was. */
export function beginSearch(body: object): Search {
  const search: Search = {
    hits: signal([]),
    told: signal(null),
    running: signal(true),
    refusal: signal(null),
    goOn: () => start(search.told.peek()?.next ?? null),
    stop: () => {
      over = true;
      deaf();
      watch();
      if (id !== null && search.running.peek()) end(id);
      search.running.value = false;
    },
  };
  let id: string | null = null;
  let over = false;
  const early: SearchTold[] = [];
  const take = (told: SearchTold): void => {
    search.told.value = told;
    if (told.hits.length) search.hits.value = [...search.hits.peek(), ...told.hits].slice(-KEPT);
    if (told.state === "stopped") search.running.value = false;
  };
  const deaf = hear("search", (told) => {
    if (id === null) early.push(told);
    else if (told.id === id) take(told);
  });
  function start(cursor: string | null): void {
    id = null;
    search.running.value = true;
    search.refusal.value = null;
    begin({ kind: "search", ...body, ...(cursor === null ? {} : { cursor }) }).then(
      (begun) => {
        if (over) return end(begun.id);
        id = begun.id;
        for (const told of early.splice(0)) if (told.id === id) take(told);
      },
      (error) => {
        search.running.value = false;
        search.refusal.value = asRefusal(error);
      },
    );
  }
  // The server forgets a search whose tab it cannot tell anything; where it was is known from its last word.
  const watch = streamOpen.subscribe((open) => {
    if (open || id === null || !search.running.peek()) return;
    search.running.value = false;
    search.refusal.value = new Refusal(0, "stream_cut", "", "");
  });
  whenOpen(() => {
    if (!over) start(null);
  });
  return search;
}

/** Stops looking, but keeps what was found and where it was: the server says so in its last word. */
export function cancelSearch(search: Search): void {
  const id = search.told.peek()?.id;
  if (id !== undefined) end(id);
}
