// Figures as people read them. Counts and offsets come as strings and go through BigInt, so that none is rounded.
import { language, zone } from "../settings";

export type Figure = string | number | bigint;

const formats = new Map<string, Intl.NumberFormat>();

function format(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = language.value + JSON.stringify(options);
  let made = formats.get(key);
  if (!made) formats.set(key, (made = new Intl.NumberFormat(language.value, options)));
  return made;
}

/** `9223372036854775807` with the separators of the language, every digit kept. */
export function exact(figure: Figure | null | undefined): string {
  if (figure === null || figure === undefined) return "–";
  return format({}).format(typeof figure === "number" ? figure : BigInt(figure));
}

/** About how many: `1.2M`. Never for offsets. */
export function about(figure: Figure | null | undefined): string {
  if (figure === null || figure === undefined) return "–";
  const number = Number(figure);
  if (Math.abs(number) < 10_000) return format({ maximumFractionDigits: Math.abs(number) < 10 ? 1 : 0 }).format(number);
  return format({ notation: "compact", maximumSignificantDigits: 3 }).format(number);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(figure: Figure | null | undefined): string {
  if (figure === null || figure === undefined) return "–";
  let number = Number(figure);
  let unit = 0;
  while (Math.abs(number) >= 1024 && unit < UNITS.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return (
    format({ maximumFractionDigits: unit > 0 && Math.abs(number) < 10 ? 1 : 0 }).format(number) + " " + UNITS[unit]
  );
}

export function percent(share: number): string {
  return format({ style: "percent", maximumFractionDigits: share < 0.1 ? 1 : 0 }).format(share);
}

/** How long: `850 ms`, `12 s`, `3 min 20 s`, `5 h 10 min`, `2 d 3 h`. The units are read in both languages. */
export function span(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  const negative = ms < 0 ? "-" : "";
  const left = Math.abs(ms);
  const two = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
    negative + big + " " + bigUnit + (small ? " " + small + " " + smallUnit : "");
  if (left < 1000) return negative + Math.round(left) + " ms";
  const seconds = Math.round(left / 1000);
  if (seconds < 10 && left % 1000 !== 0)
    return negative + format({ maximumFractionDigits: 1 }).format(left / 1000) + " s";
  if (seconds < 60) return negative + seconds + " s";
  if (seconds < 3600) return two(Math.floor(seconds / 60), "min", seconds % 60, "s");
  if (seconds < 86_400) return two(Math.floor(seconds / 3600), "h", Math.floor((seconds % 3600) / 60), "min");
  return two(Math.floor(seconds / 86_400), "d", Math.floor((seconds % 86_400) / 3600), "h");
}

/** A moment in the zone that the person chose: `2026-11-19 02:03:04.567`. The zone is shown once, in the frame. */
export function moment(ms: Figure | null | undefined, fractions = true): string {
  if (ms === null || ms === undefined) return "–";
  const number = Number(ms);
  const date = new Date(number);
  if (number < 0 || Number.isNaN(date.getTime())) return "–";
  const shown = zone.value === "utc" ? date : new Date(number - date.getTimezoneOffset() * 60_000);
  return shown
    .toISOString()
    .slice(0, fractions ? 23 : 19)
    .replace("T", " ");
}

/** `14:03:20`, for axes and lists of what happened today. */
export const clock = (ms: number): string => moment(ms, false).slice(11);
