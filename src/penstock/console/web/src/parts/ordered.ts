import { asked, setQuery } from "../routing/place";
import type { Sorting } from "./grid";

/** The order of a table, kept in the address. */
export function useSorting(otherwise: string, desc = false): Sorting {
  const by = asked("sort", otherwise);
  return {
    by,
    desc: asked("sort") ? asked("desc") === "1" : desc,
    set: (next, down) => setQuery({ sort: next, desc: down ? "1" : "0" }),
  };
}

/** Digits are compared as what they are, missing ones come last in both orders. */
export function ordered<Row>(
  rows: readonly Row[],
  of: (row: Row) => string | number | bigint | null,
  desc: boolean,
): Row[] {
  const turn = desc ? -1 : 1;
  return [...rows].sort((one, other) => {
    const left = of(one);
    const right = of(other);
    if (left === null || right === null) return left === right ? 0 : left === null ? 1 : -1;
    if (left === right) return 0;
    return (left < right ? -1 : 1) * turn;
  });
}
