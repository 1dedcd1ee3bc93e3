// Who looks, at which clusters, and what the console may do for them.
import { computed, signal } from "@preact/signals";
import { asked } from "../routing/place";
import { ask, loginWanted } from "./ask";
import type { Session } from "./shapes";
import { closeStream } from "./stream";

export const session = signal<Session | null>(null);

/** The cluster that the address names, else the first one. */
export const cluster = computed(() => {
  const all = session.value?.clusters ?? [];
  return all.find((one) => one.name === asked("cluster")) ?? all[0] ?? null;
});

export function took(next: Session): void {
  session.value = next;
  loginWanted.value = next.needs_login;
}

export const lookAgain = async (): Promise<void> => took(await ask<Session>("/session"));

export async function logOut(): Promise<void> {
  closeStream();
  await ask("/logout", { method: "POST" });
  await lookAgain();
}
