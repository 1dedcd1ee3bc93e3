import type { Stored } from "../../asking/shapes";
import { exact, moment } from "../../figures/numbers";
import { Grid, type Column } from "../../parts/grid";
import { Brief } from "../../parts/value";
import { asked, setQuery } from "../../routing/place";
import { w } from "../../words/words";
import { RecordPanel } from "./record";

const placeOf = (record: Stored): string => record.partition + ":" + record.offset;

/** Records as rows; the one that is looked at is beside them, and in the address. */
export function RecordList({ name, records }: { name: string; records: Stored[]; live?: boolean }) {
  const at = asked("at");
  const chosen = at ? records.find((record) => placeOf(record) === at) : undefined;
  const choose = (record: Stored): void => setQuery({ at: placeOf(record) === at ? null : placeOf(record) });
  return (
    <div class={"beside" + (at ? " two" : "")}>
      <Grid
        label={w().records}
        class="records"
        columns={columns(choose)}
        total={records.length}
        rowAt={(row) => records[row]}
        keyOf={placeOf}
        onRow={choose}
        chosen={(record) => placeOf(record) === at}
      />
      {at && <RecordPanel key={at} name={name} place={at} known={chosen} onClose={() => setQuery({ at: null })} />}
    </div>
  );
}

const columns = (choose: (record: Stored) => void): Column<Stored>[] => [
  { key: "partition", head: w().partition, end: true, cell: (row) => row.partition },
  {
    key: "offset",
    head: w().offset,
    end: true,
    cell: (row) => (
      <button
        type="button"
        class="link"
        onClick={(event) => {
          event.stopPropagation();
          choose(row);
        }}
      >
        {exact(row.offset)}
      </button>
    ),
  },
  { key: "time", head: w().time, cell: (row) => <span class="nowrap">{moment(row.timestamp)}</span> },
  { key: "key", head: w().key, class: "key", cell: (row) => <Brief of={row.key} most={60} /> },
  { key: "value", head: w().value, class: "preview", cell: (row) => <Brief of={row.value} /> },
];
