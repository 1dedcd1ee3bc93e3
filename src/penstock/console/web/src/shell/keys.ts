// Keys that work everywhere. In a field they write; with Ctrl, Alt or Meta they are the browser's.
import { signal } from "@preact/signals";
import { go, keepingCluster } from "../routing/place";
import { ENTRIES } from "./pages";

export const paletteOpen = signal(false);
export const keysOpen = signal(false);

let goingUntil = 0;

const writing = (at: EventTarget | null): boolean =>
  at instanceof HTMLInputElement
    ? at.type !== "checkbox"
    : at instanceof HTMLTextAreaElement || at instanceof HTMLSelectElement;

export function pressed(event: KeyboardEvent): void {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    paletteOpen.value = !paletteOpen.value;
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || writing(event.target) || document.querySelector("dialog[open]"))
    return;
  const going = event.timeStamp < goingUntil;
  goingUntil = 0;
  if (going) {
    const entry = ENTRIES.find((one) => one?.letter === event.key);
    if (entry) {
      event.preventDefault();
      go(keepingCluster(entry.to));
    }
    return;
  }
  switch (event.key) {
    case "g":
      goingUntil = event.timeStamp + 1_200;
      return;
    case "/":
      event.preventDefault();
      document.querySelector<HTMLInputElement>("[data-filter] input")?.focus();
      return;
    case "?":
      keysOpen.value = true;
      return;
    case "j":
    case "k":
      event.preventDefault();
      step(event.key === "j" ? 1 : -1);
      return;
    case "Enter":
      if (event.target instanceof HTMLTableRowElement) event.target.querySelector("a")?.click();
      return;
  }
}

/** To the next row or the one before; in a long table that scrolls, and more rows are drawn. */
function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLTableRowElement>("main tr[data-row]")];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[at < 0 ? 0 : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
