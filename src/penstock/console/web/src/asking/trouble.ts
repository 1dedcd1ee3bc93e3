// Whether the cluster that is looked at can be reached, as the stream told last.
import { computed, signal } from "@preact/signals";
import { cluster } from "./session";
import type { Trouble } from "./shapes";
import { hear } from "./stream";

const known = signal<Record<string, Trouble | null>>({});

export const trouble = computed(() => known.value[cluster.value?.name ?? ""] ?? null);

hear("trouble", (told) => {
  known.value = { ...known.peek(), [told.cluster]: told.trouble };
});

/** Every answer of the sampler says it too, so that a page knows it before the stream is open. */
export function answered(told: Trouble | null): void {
  const name = cluster.peek()?.name;
  if (name === undefined || (known.peek()[name]?.code ?? null) === (told?.code ?? null)) return;
  known.value = { ...known.peek(), [name]: told };
}
