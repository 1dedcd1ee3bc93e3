// Asking the API. Whatever goes wrong is told in the server's own words, with what to do about it.
import { signal } from "@preact/signals";
import { addressOf, asked } from "../routing/place";

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly attempt: string,
    readonly params: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

/** The console itself does not answer: its process is gone, or the way to it. */
export const consoleAway = signal(false);
/** Somebody has to log in before anything is shown. */
export const loginWanted = signal(false);

export interface Asking {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  body?: unknown;
  signal?: AbortSignal;
}

const ADDRESS_MAX = 6_000;
const NUMBERS = ["limit", "wait"];

/** The cursor of very many partitions is longer than an address may be behind some proxies: it goes as a body. */
function shortened(path: string, asking: Asking): [string, Asking] {
  const [, topic, query] = /^(\/topics\/[^/?]+)\/records\?(.*)$/.exec(path) ?? [];
  if (topic === undefined || path.length <= ADDRESS_MAX) return [path, asking];
  const given = [...new URLSearchParams(query)].map(([name, value]) => [name, NUMBERS.includes(name) ? Number(value) : value]);
  return [topic + "/read", { ...asking, method: "POST", body: Object.fromEntries(given) }];
}

export async function ask<T>(wanted: string, how: Asking = {}): Promise<T> {
  const [path, asking] = shortened(wanted, how);
  const init: RequestInit = {
    method: asking.method ?? "GET",
    // A page of another site cannot send this header without being asked first.
    headers: { "X-Penstock": "1", Accept: "application/json" },
    credentials: "same-origin",
    cache: "no-store",
  };
  if (asking.signal) init.signal = asking.signal;
  if (asking.body !== undefined) {
    init.body = JSON.stringify(asking.body);
    (init.headers as Record<string, string>)["Content-Type"] = "application/json";
  } else if (init.method !== "GET") {
    init.body = "{}";
    (init.headers as Record<string, string>)["Content-Type"] = "application/json";
  }
  let answer: Response;
  try {
    answer = await fetch(addressOf("/api/v1" + path + ofCluster(path)), init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    consoleAway.value = true;
    throw new Refusal(0, "console_away", "", "");
  }
  consoleAway.value = false;
  if (answer.ok) return (answer.status === 204 ? undefined : await answer.json()) as T;
  throw await refusalOf(answer);
}

/** A cluster that the address names is asked for in everything; none means the first. */
function ofCluster(path: string): string {
  const name = asked("cluster");
  return name ? (path.includes("?") ? "&" : "?") + "cluster=" + encodeURIComponent(name) : "";
}

async function refusalOf(answer: Response): Promise<Refusal> {
  let told: { code?: string; message?: string; attempt?: string; params?: Record<string, unknown> } = {};
  try {
    const body = await answer.json();
    told = body.error ?? body;
  } catch {
    // A proxy's page in between is no JSON; the status is what is known.
  }
  if (answer.status === 401) loginWanted.value = true;
  return new Refusal(
    answer.status,
    told.code ?? "http_" + answer.status,
    told.message ?? answer.statusText,
    told.attempt ?? "",
    told.params ?? {},
  );
}

export const asRefusal = (error: unknown): Refusal =>
  error instanceof Refusal
    ? error
    : new Refusal(0, "page_error", error instanceof Error ? error.message : String(error), "");
