// A table. A long one draws only the rows in sight, and says to those who listen how many there are.
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { w } from "../words/words";

export interface Column<Row> {
  key: string;
  head: string;
  cell: (row: Row) => ComponentChildren;
  end?: boolean;
  sort?: boolean;
  /** The column that names the row: it heads the card on a phone. */
  name?: boolean;
  wrap?: boolean;
  offPhone?: boolean;
}
export interface Sorting {
  by: string;
  desc: boolean;
  set: (by: string, desc: boolean) => void;
}
interface Given<Row> {
  label: string;
  columns: Column<Row>[];
  total: number;
  rowAt: (at: number) => Row | undefined;
  keyOf: (row: Row) => string;
  sorting?: Sorting;
  onWindow?: (first: number, end: number) => void;
  class?: string;
}

const LONG = 150;
const BEYOND = 12;
const phone = matchMedia("(max-width: 640px)");
const narrow = signal(phone.matches);
phone.addEventListener("change", () => (narrow.value = phone.matches));

export function Grid<Row>({ label, columns, total, rowAt, keyOf, sorting, onWindow, class: extra }: Given<Row>) {
  const box = useRef<HTMLDivElement>(null);
  const long = total > LONG;
  const height = narrow.value ? 64 : 36;
  const window = useSignal({ first: 0, end: long ? 40 : total });
  const look = (): void => {
    const at = box.current;
    if (!at || !long) return;
    const first = Math.max(0, Math.floor(at.scrollTop / height) - BEYOND);
    const end = Math.min(total, Math.ceil((at.scrollTop + at.clientHeight) / height) + BEYOND);
    const shown = window.peek();
    if (first !== shown.first || end !== shown.end) window.value = { first, end };
    onWindow?.(first, end);
  };
  useEffect(look, [total, height, long]);
  const first = long ? Math.min(window.value.first, Math.max(0, total - 1)) : 0;
  const end = long ? Math.min(window.value.end, total) : total;
  const rows = [];
  for (let at = first; at < end; at += 1)
    rows.push(<GridRow key={keyAt(rowAt(at), keyOf, at)} at={at} row={rowAt(at)} columns={columns} />);
  return (
    <div
      class={"grid-box" + (long ? " long" : "")}
      ref={box}
      onScroll={look}
      tabIndex={long ? 0 : undefined}
      role={long ? "region" : undefined}
      aria-label={long ? label : undefined}
    >
      <table
        class={"grid cards " + (long ? "fixed " : "") + (extra ?? "")}
        aria-rowcount={total + 1}
        aria-label={label}
      >
        <thead>
          <tr>
            {columns.map((column) => (
              <Head key={column.key} column={column} sorting={sorting} />
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <Gap height={first * height} span={columns.length} />}
          {rows}
          {end < total && <Gap height={(total - end) * height} span={columns.length} />}
        </tbody>
      </table>
    </div>
  );
}

const keyAt = <Row,>(row: Row | undefined, keyOf: (row: Row) => string, at: number): string =>
  row === undefined ? "at " + at : keyOf(row);

const Gap = ({ height, span }: { height: number; span: number }) => (
  <tr class="gap" aria-hidden="true">
    <td colSpan={span} style={{ height: height + "px" }} />
  </tr>
);

function Head<Row>({ column, sorting }: { column: Column<Row>; sorting: Sorting | undefined }) {
  const chosen = sorting?.by === column.key;
  const order = chosen ? (sorting.desc ? "descending" : "ascending") : undefined;
  if (!sorting || !column.sort) return <th class={column.end ? "end" : ""}>{column.head}</th>;
  return (
    <th class={column.end ? "end" : ""} aria-sort={order}>
      <button type="button" onClick={() => sorting.set(column.key, chosen ? !sorting.desc : column.end === true)}>
        {column.head}
        <span aria-hidden="true">{chosen ? (sorting.desc ? "↓" : "↑") : ""}</span>
      </button>
    </th>
  );
}

function GridRow<Row>({ at, row, columns }: { at: number; row: Row | undefined; columns: Column<Row>[] }) {
  return (
    <tr aria-rowindex={at + 2} data-row={at} tabIndex={-1}>
      {columns.map((column) => {
        const classes = [
          column.end && "end",
          column.name && "name",
          column.wrap && "wrap",
          column.offPhone && "off-phone",
        ]
          .filter(Boolean)
          .join(" ");
        return (
          <td key={column.key} class={classes} data-head={column.name || column.head === "" ? undefined : column.head}>
            {row === undefined ? <div class="skeleton" /> : column.cell(row)}
          </td>
        );
      })}
    </tr>
  );
}

export const GridFoot = ({
  shown,
  total,
  children,
}: {
  shown: number;
  total: number;
  children?: ComponentChildren;
}) => (
  <div class="grid-foot">
    <span role="status">{w().rows(shown, total)}</span>
    {children}
  </div>
);
