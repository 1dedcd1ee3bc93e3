import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ask } from "../asking/ask";
import type { GroupRow, Page, TopicRow } from "../asking/shapes";
import { Dialog } from "../parts/dialog";
import { Icon, type IconName } from "../parts/icon";
import { go, keepingCluster, to } from "../routing/place";
import { w } from "../words/words";
import { paletteOpen } from "./keys";
import { ENTRIES } from "./pages";

interface Hit {
  to: string;
  text: string;
  icon: IconName;
  kind: string;
}

/** Ctrl-K: to any page, topic or group by a few letters of its name. */
export function Palette() {
  const text = useSignal("");
  const named = useSignal<Hit[]>([]);
  const at = useSignal(0);
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const look = async (next: string): Promise<void> => {
    text.value = next;
    at.value = 0;
    running.current?.abort();
    const mine = (running.current = new AbortController());
    if (!next.trim()) {
      named.value = [];
      return;
    }
    const of = "?limit=8&q=" + encodeURIComponent(next.trim());
    const [topics, groups] = await Promise.allSettled([
      ask<Page<TopicRow>>("/topics" + of + "&internal=1", { signal: mine.signal }),
      ask<Page<GroupRow>>("/groups" + of, { signal: mine.signal }),
    ]);
    if (mine.signal.aborted) return;
    named.value = [
      ...(topics.status === "fulfilled" ? topics.value.items : []).map((one): Hit => ({
        to: to("/topics/{}/messages", one.name),
        text: one.name,
        icon: "topics",
        kind: w().topic,
      })),
      ...(groups.status === "fulfilled" ? groups.value.items : []).map((one): Hit => ({
        to: to("/groups/{}", one.group),
        text: one.group,
        icon: "groups",
        kind: w().group,
      })),
    ];
  };
  const wanted = text.value.trim().toLowerCase();
  const pages = ENTRIES.flatMap((entry): Hit[] =>
    entry ? [{ to: entry.to, text: w()[entry.word], icon: entry.icon, kind: "g " + entry.letter }] : [],
  ).filter((hit) => hit.text.toLowerCase().includes(wanted));
  const hits = [...pages, ...named.value];
  const close = (): void => void (paletteOpen.value = false);
  const open = (hit: Hit | undefined): void => {
    if (!hit) return;
    close();
    go(keepingCluster(hit.to));
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.isComposing) return; // Enter ends the writing of a Chinese word, it does not open
    if (event.key === "ArrowDown") at.value = Math.min(at.value + 1, hits.length - 1);
    else if (event.key === "ArrowUp") at.value = Math.max(at.value - 1, 0);
    else if (event.key === "Enter") open(hits[at.value]);
    else return;
    event.preventDefault();
    document.getElementById("hit-" + at.value)?.scrollIntoView({ block: "nearest" });
  };
  return (
    <Dialog class="palette" label={w().search} onClose={close}>
      <input
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="hits"
        aria-activedescendant={hits.length ? "hit-" + at.value : undefined}
        aria-label={w().search}
        placeholder={w().searchHint}
        value={text.value}
        onInput={(event) => void look(event.currentTarget.value)}
        onKeyDown={pressed}
      />
      <ul id="hits" role="listbox" aria-label={w().search}>
        {hits.map((hit, index) => (
          <li
            key={hit.to}
            id={"hit-" + index}
            role="option"
            aria-selected={index === at.value}
            onClick={() => open(hit)}
            onMouseMove={() => (at.value = index)}
          >
            <Icon name={hit.icon} />
            {hit.text}
            <small>{hit.kind}</small>
          </li>
        ))}
        {!hits.length && (
          <li role="option" aria-disabled="true" aria-selected="false">
            {w().nothingFound}
          </li>
        )}
      </ul>
    </Dialog>
  );
}
