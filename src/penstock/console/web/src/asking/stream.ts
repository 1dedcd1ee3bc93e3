// One stream of events a tab, for everything that the tab watches: browsers open only six connections to a host.
import { signal } from "@preact/signals";
import { addressOf } from "../routing/place";
import { consoleAway, loginWanted } from "./ask";
import type { Happened, SearchTold, TailTold, Trouble } from "./shapes";

export type Part = "metadata" | "offsets" | "groups" | "log_dirs";

interface Heard {
  sampled: { cluster: string; parts: Part[]; as_of_ms: number };
  trouble: { cluster: string; trouble: Trouble | null };
  event: Happened & { cluster: string };
  tail: TailTold;
  search: SearchTold;
  bye: { code: string };
}
type Listener<K extends keyof Heard> = (data: Heard[K]) => void;

export const streamOpen = signal(false);
export const tab = [...crypto.getRandomValues(new Uint8Array(16))]
  .map((byte) => byte.toString(16).padStart(2, "0"))
  .join("");

const listeners: { [K in keyof Heard]: Set<Listener<K>> } = {
  sampled: new Set(),
  trouble: new Set(),
  event: new Set(),
  tail: new Set(),
  search: new Set(),
  bye: new Set(),
};
let source: EventSource | null = null;
let retry: ReturnType<typeof setTimeout> | undefined;
let pauseMs = 500;

/** Calls `listener` with every such event until the function that it gives back is called. */
export function hear<K extends keyof Heard>(name: K, listener: Listener<K>): () => void {
  listeners[name].add(listener);
  return () => void listeners[name].delete(listener);
}

export function openStream(): void {
  if (source) return;
  clearTimeout(retry);
  const mine = (source = new EventSource(addressOf("/api/v1/events?tab=" + tab)));
  mine.addEventListener("hello", () => {
    pauseMs = 500;
    streamOpen.value = true;
    consoleAway.value = false;
  });
  for (const name of Object.keys(listeners) as (keyof Heard)[]) {
    mine.addEventListener(name, (event) => {
      // What a stream still had to say after it was closed is of another login.
      if (mine !== source) return;
      const data = JSON.parse((event as MessageEvent<string>).data);
      for (const listener of [...listeners[name]]) listener(data as never);
    });
  }
  // The browser would try again by itself, but not after a refusal; so there is one way for both.
  mine.addEventListener("error", () => {
    if (mine !== source) return;
    closeStream();
    comeBack();
  });
}

hear("bye", ({ code }) => {
  closeStream();
  if (code !== "logged_out") comeBack();
});

function comeBack(): void {
  clearTimeout(retry);
  if (document.hidden || loginWanted.peek()) return;
  retry = setTimeout(openStream, pauseMs);
  pauseMs = Math.min(pauseMs * 2, 5_000);
}

export function closeStream(): void {
  clearTimeout(retry);
  source?.close();
  source = null;
  streamOpen.value = false;
}

/** A tab that nobody looks at costs the server nothing. */
let hiding: ReturnType<typeof setTimeout> | undefined;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(closeStream, 30_000);
  else if (!loginWanted.peek()) openStream();
});
