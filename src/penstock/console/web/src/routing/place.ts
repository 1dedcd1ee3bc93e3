// Where the page is: a path below the base that the server wrote, and a query that keeps every filter.
import { batch, computed, signal } from "@preact/signals";

const base = new URL(document.baseURI).pathname.replace(/\/$/, "");

const below = (pathname: string): string =>
  (base !== "" && pathname.startsWith(base) ? pathname.slice(base.length) : pathname) || "/";

export const path = signal(below(location.pathname));
const search = signal(location.search);
export const query = computed(() => new URLSearchParams(search.value));

function look(): void {
  batch(() => {
    path.value = below(location.pathname);
    search.value = location.search;
  });
}
addEventListener("popstate", look);

/** The address that a link shows, and that the API is asked at. */
export const addressOf = (to: string): string => base + to;

export function go(to: string): void {
  history.pushState(null, "", addressOf(to));
  look();
  scrollTo(0, 0);
}

/** Puts filters into the address without a step in the history: going back leaves the page, not the last key pressed. */
export function setQuery(changes: Record<string, string | null>): void {
  const next = new URLSearchParams(search.peek());
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  history.replaceState(null, "", location.pathname + (text ? "?" + text : ""));
  look();
}

export const asked = (name: string, otherwise = ""): string => query.value.get(name) ?? otherwise;

/** `to("/topics/{}/messages", name)`: names of users go into addresses encoded. */
export function to(shape: string, ...names: (string | number)[]): string {
  let at = 0;
  return shape.replace(/\{\}/g, () => encodeURIComponent(String(names[at++])));
}

/** A link stays in the cluster that is looked at. */
export function keepingCluster(target: string): string {
  const name = asked("cluster");
  if (!name || /[?&]cluster=/.test(target)) return target;
  return target + (target.includes("?") ? "&" : "?") + "cluster=" + encodeURIComponent(name);
}
