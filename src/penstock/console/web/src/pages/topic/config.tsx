import { useSignal } from "@preact/signals";
import { useAsked } from "../../asking/resource";
import type { ConfigEntry } from "../../asking/shapes";
import { bytes, exact, span } from "../../figures/numbers";
import { Badge, type Tone } from "../../parts/badge";
import { Check } from "../../parts/field";
import { FilterBox } from "../../parts/filter";
import { Grid, GridFoot, type Column } from "../../parts/grid";
import { Panel } from "../../parts/page";
import { Shown } from "../../parts/shown";
import { asked, setQuery } from "../../routing/place";
import { told, w } from "../../words/words";
import { ConfigDialog } from "./configDialog";

/** Every setting with what it means, where its value comes from, and what changes it. For topics and brokers alike. */
export function ConfigTab({ path }: { path: string }) {
  const asking = useAsked<{ entries: ConfigEntry[] }>(path);
  const editing = useSignal<ConfigEntry | null>(null);
  const wanted = asked("q").toLowerCase();
  const setOnly = asked("set") === "1";
  return (
    <Panel plain>
      <div class="bar">
        <FilterBox label={w().filter} />
        <Check on={setOnly} set={(on) => setQuery({ set: on ? "1" : null })}>
          {w().setOnly}
        </Check>
      </div>
      <Shown of={asking}>
        {(now) => {
          const rows = now.entries.filter(
            (entry) =>
              (!setOnly || !["default", "static"].includes(entry.source)) &&
              (entry.name + " " + (entry.doc ?? "")).toLowerCase().includes(wanted),
          );
          return (
            <>
              <Grid
                label={w().config}
                columns={columns((entry) => (editing.value = entry))}
                total={rows.length}
                rowAt={(at) => rows[at]}
                keyOf={(row) => row.name}
              />
              <GridFoot shown={rows.length} total={now.entries.length} />
            </>
          );
        }}
      </Shown>
      {editing.value && (
        <ConfigDialog path={path} entry={editing.value} onDone={asking.again} onClose={() => (editing.value = null)} />
      )}
    </Panel>
  );
}

const TONES: Record<string, Tone> = { topic: "info", broker: "info", cluster: "info" };

const columns = (edit: (entry: ConfigEntry) => void): Column<ConfigEntry>[] => [
  {
    key: "name",
    head: w().name,
    wrap: true,
    cell: (row) => (
      <>
        <strong class="mono">{row.name}</strong>
        {row.doc && <div class="soft small doc">{row.doc}</div>}
      </>
    ),
  },
  { key: "value", head: w().value, wrap: true, class: "at-top", cell: (row) => <Value of={row} /> },
  {
    key: "source",
    head: w().source,
    class: "at-top",
    cell: (row) => <Badge tone={TONES[row.source] ?? "quiet"}>{told("source_", row.source, row.source)}</Badge>,
  },
  {
    key: "edit",
    head: w().actions,
    mute: true,
    end: true,
    class: "at-top",
    cell: (row) =>
      row.read_only ? (
        <span class="soft small">{w().fixed}</span>
      ) : (
        <button type="button" class="button tiny" aria-label={w().change + " " + row.name} onClick={() => edit(row)}>
          {w().change}
        </button>
      ),
  },
];

/** The value that is stored, and what it means where it is a time or a size. */
function Value({ of }: { of: ConfigEntry }) {
  if (of.sensitive) return <Badge>{w().secret}</Badge>;
  if (of.value === null) return <span class="soft">–</span>;
  if (of.value === "") return <span class="soft">{w().emptyText}</span>;
  const meaning = meaningOf(of.value, of.unit);
  return (
    <>
      <span class="mono">{of.value}</span>
      {meaning && <div class="soft small">{meaning}</div>}
    </>
  );
}

export function meaningOf(value: string, unit: ConfigEntry["unit"]): string | null {
  if (unit === null || !/^\d+$/.test(value)) return null;
  if (value === "9223372036854775807") return w().noLimit;
  if (unit === "ms") return Number(value) < 1000 ? null : span(Number(value));
  return Number(value) < 1024 ? null : bytes(value) + " (" + exact(value) + ")";
}
