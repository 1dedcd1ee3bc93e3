// A thing that a page shows and keeps fresh. What was seen last stays on the page, with its age, while the server is away.
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { asked } from "../routing/place";
import { asRefusal, ask, type Refusal } from "./ask";
import { cluster } from "./session";
import type { Trouble } from "./shapes";
import { hear, streamOpen, type Part } from "./stream";
import { answered } from "./trouble";

export interface Seen<T> {
  data: T | null;
  refusal: Refusal | null;
  asking: boolean;
}
export interface Resource<T> {
  seen: ReadonlySignal<Seen<T>>;
  again: () => void;
}

/** Without the stream, and after a refusal, a page asks by itself. */
const ALONE_MS = 5_000;
const REFUSED_MS = 2_000;

/** Asks for `path` now and whenever one of `parts` was sampled; `null` asks for nothing, no parts means once. */
export function useAsked<T>(path: string | null, parts: readonly Part[] = []): Resource<T> {
  const seen = useSignal<Seen<T>>({ data: null, refusal: null, asking: path !== null });
  const again = useRef<() => void>(() => undefined);
  const kept = useRef<string | null>(null);
  const of = asked("cluster");
  const key = parts.join();
  useEffect(() => {
    if (path === null) return undefined;
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let running: AbortController | undefined;
    const ended = (next: Seen<T>): void => {
      running = undefined;
      if (over) return;
      seen.value = next;
      const passing = next.refusal && (next.refusal.status === 0 || next.refusal.status >= 500);
      if (passing) timer = setTimeout(run, REFUSED_MS);
      else if (parts.length && !next.refusal) timer = setTimeout(() => streamOpen.peek() || run(), ALONE_MS);
    };
    const run = (): void => {
      clearTimeout(timer);
      if (running || document.hidden) return;
      const mine = (running = new AbortController());
      ask<T>(path, { signal: mine.signal }).then(
        (data) => {
          if (mine.signal.aborted) return;
          const { trouble } = data as { trouble?: Trouble | null };
          if (trouble !== undefined) answered(trouble);
          ended({ data, refusal: null, asking: false });
        },
        (error) => {
          if (mine.signal.aborted) return;
          const refusal = asRefusal(error);
          // What one may not see any more, or what is gone, does not stay on the page; what cannot be asked now does.
          const kept = refusal.status === 0 || refusal.status === 429 || refusal.status >= 500;
          ended({ data: kept ? seen.peek().data : null, refusal, asking: false });
        },
      );
    };
    again.current = run;
    // Rows of the filter before stay until those of the next one are here; another thing begins empty.
    const same = kept.current === of;
    kept.current = of;
    seen.value = { data: same ? seen.peek().data : null, refusal: null, asking: true };
    run();
    const deaf = hear("sampled", (told) => {
      if (told.cluster === cluster.peek()?.name && told.parts.some((part) => parts.includes(part))) run();
    });
    document.addEventListener("visibilitychange", run);
    return () => {
      over = true;
      clearTimeout(timer);
      running?.abort();
      deaf();
      document.removeEventListener("visibilitychange", run);
    };
  }, [path, key, of]);
  return { seen, again: () => again.current() };
}
