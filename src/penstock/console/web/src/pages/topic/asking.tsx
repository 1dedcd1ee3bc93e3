import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asRefusal, ask, type Refusal } from "../../asking/ask";
import { Choice, Text } from "../../parts/field";
import { asked, setQuery } from "../../routing/place";
import { w } from "../../words/words";

const PLACES = ["newest", "oldest", "offset", "time", "group"] as const;
type Place = (typeof PLACES)[number];

/** What the address asks for. */
export function currentAsking() {
  return {
    from: asked("from", "newest"),
    until: asked("to"),
    partition: asked("partition"),
    where: asked("where"),
    contains: asked("contains"),
    isolation: asked("isolation"),
  };
}

/** Where to begin, which partitions, and what to look for; nothing is asked of the brokers before a button or Enter. */
export function Asking({ partitions, onProduce }: { partitions: number; onProduce: () => void }) {
  const now = currentAsking();
  const mode = asked("mode", "page");
  const place = useSignal<Place>("newest");
  const exactly = useSignal("");
  const partition = useSignal("");
  const where = useSignal("");
  const contains = useSignal("");
  const committed = useSignal(false);
  // A link or the way back changes the address: the form follows it.
  useEffect(() => {
    const [kind, ...rest] = now.from.split(":");
    place.value = PLACES.find((one) => one === kind) ?? "newest";
    exactly.value = rest.join(":");
    partition.value = now.partition;
    where.value = now.where;
    contains.value = now.contains;
    committed.value = now.isolation === "read_committed";
  }, [now.from, now.partition, now.where, now.contains, now.isolation]);
  const wrong = useChecked(where.value);
  const fromOf = (): string =>
    place.value === "newest" || place.value === "oldest" ? place.value : place.value + ":" + exactly.value.trim();
  const start = (next: "page" | "search" | "tail"): void =>
    setQuery({
      mode: next === "page" ? null : next,
      from: fromOf() === "newest" ? null : fromOf(),
      partition: partition.value || null,
      where: next === "page" ? null : where.value.trim() || null,
      contains: next === "page" ? null : contains.value || null,
      isolation: committed.value ? "read_committed" : null,
      // The same search again is another one.
      run: next === "search" ? String(Date.now()) : null,
      cursor: null,
      back: null,
      at: null,
    });
  const looking = where.value.trim() !== "" || contains.value !== "";
  const submit = (event: Event): void => {
    event.preventDefault();
    start(mode === "tail" ? "tail" : looking ? "search" : "page");
  };
  const incomplete = place.value !== "newest" && place.value !== "oldest" && exactly.value.trim() === "";
  return (
    <form class="asking" onSubmit={submit}>
      <div class="bar">
        <Choice
          label={w().from}
          value={place.value}
          set={(next) => (place.value = next as Place)}
          of={[
            ["newest", w().fromNewest],
            ["oldest", w().fromOldest],
            ["offset", w().fromOffset],
            ["time", w().fromTime],
            ["group", w().fromGroup],
          ]}
        />
        {place.value === "offset" && (
          <Text label={w().offset} value={exactly.value} set={(next) => (exactly.value = next)} placeholder="42" />
        )}
        {place.value === "time" && (
          <Text
            label={w().time}
            value={exactly.value}
            set={(next) => (exactly.value = next)}
            placeholder="-15m, 2026-01-31T12:00:00Z"
          />
        )}
        {place.value === "group" && (
          <Text label={w().group} value={exactly.value} set={(next) => (exactly.value = next)} placeholder="app" />
        )}
        <Choice
          label={w().partitions}
          value={partition.value}
          set={(next) => (partition.value = next)}
          of={[
            ["", w().allPartitions],
            ...Array.from(
              { length: Math.min(partitions, 1000) },
              (_, at) => [String(at), w().partition + " " + at] as const,
            ),
          ]}
        />
        <Choice
          label={w().isolation}
          value={committed.value ? "read_committed" : ""}
          set={(next) => (committed.value = next !== "")}
          of={[
            ["", w().readAll],
            ["read_committed", w().readCommitted],
          ]}
        />
        <button class="button" type="button" disabled={incomplete} onClick={() => start("page")}>
          {w().show}
        </button>
        <span class="push" />
        <button
          class="button"
          type="button"
          aria-pressed={mode === "tail"}
          disabled={wrong !== null}
          onClick={() => start(mode === "tail" ? "page" : "tail")}
        >
          {mode === "tail" ? w().stopTail : w().liveTail}
        </button>
        <button class="button main" type="button" onClick={onProduce}>
          {w().produce}
        </button>
      </div>
      <div class="bar">
        <div class="grow wide" data-filter>
          <Text
            label={w().condition}
            value={where.value}
            set={(next) => (where.value = next)}
            invalid={wrong !== null}
            placeholder={'value.amount > 50 and value.country == "it"'}
          />
        </div>
        <Text
          label={w().contains}
          value={contains.value}
          set={(next) => (contains.value = next)}
          placeholder={w().containsText}
        />
        <button
          class="button"
          disabled={!looking || wrong !== null || incomplete}
          onClick={() => start("search")}
          type="button"
        >
          {w().search}
        </button>
        {/* Enter in a field does what the fields say. */}
        <button class="hidden" tabIndex={-1} aria-hidden="true">
          {w().search}
        </button>
      </div>
      {wrong && (
        <p class="wrong" role="alert">
          {wrong.message}
        </p>
      )}
    </form>
  );
}

/** What is wrong with a condition, a moment after the last key. */
function useChecked(where: string): Refusal | null {
  const wrong = useSignal<Refusal | null>(null);
  useEffect(() => {
    wrong.value = null;
    if (!where.trim()) return undefined;
    const running = new AbortController();
    const timer = setTimeout(() => {
      ask<{ ok: boolean; error?: { code: string; message: string; attempt?: string } }>("/conditions/check", {
        method: "POST",
        body: { where },
        signal: running.signal,
      }).then(
        (told) => {
          if (running.signal.aborted || told.ok || !told.error) return;
          wrong.value = asRefusal(Object.assign(new Error(told.error.message), { name: told.error.code }));
        },
        () => undefined, // the search itself will say what is wrong
      );
    }, 300);
    return () => {
      clearTimeout(timer);
      running.abort();
    };
  }, [where]);
  return wrong.value;
}
