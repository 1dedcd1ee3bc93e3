import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useAsked } from "../asking/resource";
import { cluster } from "../asking/session";
import type { Happened } from "../asking/shapes";
import { hear } from "../asking/stream";
import { moment } from "../figures/numbers";
import { Mark, type Tone } from "../parts/badge";
import { Command } from "../parts/command";
import { Choice } from "../parts/field";
import { FilterBox } from "../parts/filter";
import { PageOf, Panel } from "../parts/page";
import { Empty, Shown } from "../parts/shown";
import { asked, setQuery } from "../routing/place";
import { told, w } from "../words/words";

const AT_ONCE = 200;
const KEPT = 2_000;

/** What happened in the cluster, and what somebody changed through the console; new ones come by themselves. */
export function EventsPage() {
  const first = useAsked<{ items: Happened[] }>("/log?limit=" + AT_ONCE);
  const before = asked("before");
  const older = useAsked<{ items: Happened[] }>(before ? "/log?limit=" + AT_ONCE + "&before=" + before : null);
  const fresh = useSignal<Happened[]>([]);
  const here = cluster.value?.name;
  useEffect(() => {
    fresh.value = [];
    return hear("event", (event) => {
      if (event.cluster === here) fresh.value = [event, ...fresh.peek()].slice(0, KEPT);
    });
  }, [here]);
  const wanted = asked("q").toLowerCase();
  const level = asked("level");
  return (
    <PageOf title={w().events}>
      <Panel plain>
        <div class="bar">
          <FilterBox label={w().filter} />
          <Choice
            label={w().level}
            value={level}
            set={(next) => setQuery({ level: next })}
            of={[
              ["", w().everything],
              ["warn", w().onlyTrouble],
              ["changed", w().onlyChanges],
            ]}
          />
        </div>
        <Shown of={before ? older : first}>
          {(now) => {
            const known = new Set(now.items.map((event) => event.id));
            const all = [...(before ? [] : fresh.value.filter((event) => !known.has(event.id))), ...now.items];
            const shown = all.filter((event) => fits(event, level) && event.text.toLowerCase().includes(wanted));
            const last = now.items[now.items.length - 1];
            return (
              <>
                {shown.length ? (
                  <EventList of={shown} whole />
                ) : (
                  <Empty title={all.length ? w().noEventFits : w().noEvents} />
                )}
                <div class="grid-foot">
                  <span role="status">{w().rows(shown.length, all.length)}</span>
                  <span class="row">
                    {before && (
                      <button type="button" class="button tiny" onClick={() => setQuery({ before: null })}>
                        {w().fromNewest}
                      </button>
                    )}
                    <button
                      type="button"
                      class="button tiny"
                      disabled={now.items.length < AT_ONCE || !last}
                      onClick={() => last && setQuery({ before: String(last.id) })}
                    >
                      {w().earlier}
                    </button>
                  </span>
                </div>
              </>
            );
          }}
        </Shown>
      </Panel>
    </PageOf>
  );
}

const fits = (event: Happened, level: string): boolean =>
  level === "" || (level === "changed" ? event.kind === "changed" : event.level === "warn" || event.level === "bad");

const TONES: Record<string, Tone> = { bad: "bad", warn: "warn", good: "good", info: "info" };

export const EventList = ({ of, whole }: { of: Happened[]; whole?: boolean }) => (
  <ul class={"events" + (whole ? " whole" : "")}>
    {of.map((event) => (
      <li key={event.id}>
        <time title={moment(event.at_ms)}>
          {whole ? moment(event.at_ms, false) : moment(event.at_ms, false).slice(11)}
        </time>
        <Mark tone={TONES[event.level] ?? "quiet"} />
        <div>
          <span class="hidden">{told("level_", event.level, event.level)}: </span>
          {event.text}
          {typeof event.params.by === "string" && <span class="soft"> · {event.params.by}</span>}
          {whole && typeof event.params.command === "string" && <Command text={event.params.command} />}
        </div>
      </li>
    ))}
  </ul>
);
