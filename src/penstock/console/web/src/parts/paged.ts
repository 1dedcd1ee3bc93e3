// A list of the server's, of which the page holds the part that is in sight.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Resource } from "../asking/resource";
import { useAsked } from "../asking/resource";
import type { Page } from "../asking/shapes";
import type { Part } from "../asking/stream";

const STEP = 100;
const AT_ONCE = 300;

export interface Paged<Row> {
  resource: Resource<Page<Row>>;
  rowAt: (at: number) => Row | undefined;
  onWindow: (first: number, end: number) => void;
}

/** `path` with its filters; where the window is, is added. */
export function usePaged<Row>(path: string, parts: readonly Part[]): Paged<Row> {
  const from = useSignal(0);
  const asked = useRef(path);
  if (asked.current !== path) {
    asked.current = path;
    from.value = 0;
  }
  const resource = useAsked<Page<Row> & { offset?: number }>(
    path + (path.includes("?") ? "&" : "?") + "offset=" + from.value + "&limit=" + AT_ONCE,
    parts,
  );
  const held = useRef({ page: null as Page<Row> | null, from: 0 });
  const { data, asking } = resource.seen.value;
  // While the next window is on its way, the rows at hand are still those of the one before.
  if (data !== held.current.page && !asking) held.current = { page: data, from: from.peek() };
  const { page, from: base } = held.current;
  return {
    resource,
    rowAt: (at) => page?.items[at - base],
    onWindow: (first, end) => {
      const inside = first >= from.peek() && end <= from.peek() + AT_ONCE;
      if (!inside) from.value = Math.max(0, Math.floor((first + end) / 2 / STEP) * STEP - STEP);
    },
  };
}
