"""Changes into the rows of one bucket. pyarrow only, no files: rows come in batches and go out in batches.

Memory holds the bucket's changes, and of its rows those whose keys they have; all others pass through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.errors import SparkRoomError
from penstock.spark.lake.keyed import graves as remembered
from penstock.spark.lake.keyed.changes import DELETE, IGNORED, KIND, SEEN, UPSERT, ChangeColumns, key_of_each
from penstock.spark.lake.keyed.graves import DIED
from penstock.spark.lake.keyed.reduction import FROM_TABLE, in_one_piece, reduced, settled
from penstock.spark.lake.store import MergeCounts


class KeyTwice(SparkRoomError):
    """The table has two rows of one key: somebody else wrote one."""


class Pending:
    """Changes of one bucket as they come, reduced whenever they have grown to twice what was left of them."""

    def __init__(self, columns: ChangeColumns, held_bytes: int = 16 << 20) -> None:
        self._columns = columns
        self._held = columns.schema.empty_table()
        self._limit_bytes = self._least_bytes = held_bytes
        self.ignored = 0

    def add(self, changes: pa.RecordBatch | pa.Table) -> None:
        """With the columns of changes."""
        counted = pc.equal(changes.column(KIND), IGNORED)
        self.ignored += pc.sum(changes.filter(counted).column(SEEN)).as_py() or 0
        given = changes.filter(pc.invert(counted))
        more = pa.Table.from_batches([given]) if isinstance(given, pa.RecordBatch) else given
        self._held = pa.concat_tables([self._held, more])
        if self._held.nbytes > self._limit_bytes:
            self._held = reduced(self._held.combine_chunks(), self._columns)
            self._limit_bytes = max(self._least_bytes, 2 * self._held.nbytes)

    def changes(self) -> pa.Table:
        self._held = reduced(self._held, self._columns)
        return self._held


class BucketMerge:
    """One bucket's changes on their way into its rows: pass all rows, then take the end."""

    def __init__(self, changes: pa.Table, graves: pa.Table, columns: ChangeColumns) -> None:
        """`changes` as `Pending` gives them."""
        self._columns = columns
        self._changes = changes
        self._keys = pc.unique(key_of_each(changes, columns.keys)) if changes.num_rows else pa.array([], pa.binary())
        self._first = pc.unique(changes.column(columns.keys[0]))
        self._matched: list[pa.RecordBatch] = []
        concerned = self._concerned(graves)
        self._graves = graves.filter(concerned)
        self._untouched = graves.filter(pc.invert(concerned))
        self.counts = MergeCounts()

    def pass_by(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of the table, with its columns: those that no change concerns come out again."""
        for batch in rows:
            hit = self._concerned(batch)
            if pc.any(hit).as_py():
                self._matched.append(batch.filter(hit))
                batch = batch.filter(pc.invert(hit))
            if batch.num_rows:
                yield batch

    def end(self, now_ms: int) -> tuple[pa.Table, pa.Table]:
        """The rows of the changed keys, and the deletes to remember; `counts` are known then."""
        before = self._rows_before()
        died = remembered.as_changes(self._graves, self._columns)
        pool = pa.concat_tables([_told(self._changes, False), _told(before, True), _told(died, True)])
        winners = settled(pool, self._columns)
        self.counts = self._counted(winners, before)
        live = winners.filter(pc.equal(winners.column(KIND), UPSERT)).select(self._columns.rows.names)
        return live, self._to_remember(winners, now_ms)

    def _concerned(self, rows: pa.Table | pa.RecordBatch) -> pa.Array:
        """Whether each row has the key of a change. Most have not even its first column."""
        keys = self._columns.keys
        near = in_one_piece(pc.is_in(rows.column(keys[0]), value_set=self._first))
        if len(keys) == 1 or not pc.any(near).as_py():
            return near
        exact = pc.is_in(key_of_each(rows.filter(near), keys), value_set=self._keys)
        return pc.replace_with_mask(near, near, in_one_piece(exact))

    def _rows_before(self) -> pa.Table:
        """The rows that the table has of the changed keys, as changes."""
        rows = pa.Table.from_batches(self._matched, schema=self._columns.rows)
        if len(pc.unique(key_of_each(rows, self._columns.keys))) < rows.num_rows:
            found = rows.group_by(list(self._columns.keys)).aggregate([([], "count_all")])
            twice = found.filter(pc.greater(found.column("count_all"), 1)).select(list(self._columns.keys))
            raise KeyTwice(
                f"the table has {twice.num_rows} of the changed keys more than once, one of them "
                f"{twice.to_pylist()[0]}: another writer has put a row there. Delete one of each and start the query "
                "again: it goes on where the table stands"
            )
        kind = pa.repeat(pa.scalar(UPSERT, pa.int8()), rows.num_rows)
        return rows.append_column(self._columns.schema.field(KIND), kind).append_column(
            self._columns.schema.field(SEEN), pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
        )

    def _counted(self, winners: pa.Table, before: pa.Table) -> MergeCounts:
        had = pc.is_in(key_of_each(winners, self._columns.keys), value_set=key_of_each(before, self._columns.keys))
        new = pc.invert(winners.column(FROM_TABLE))
        is_delete = pc.equal(winners.column(KIND), DELETE)

        def number(*conditions: pa.ChunkedArray | pa.Array) -> int:
            found = new
            for each in conditions:
                found = pc.and_(found, each)
            return int(pc.sum(found).as_py() or 0)

        inserted = number(pc.invert(is_delete), pc.invert(had))
        updated = number(pc.invert(is_delete), had)
        deleted, nothing = number(is_delete, had), number(is_delete, pc.invert(had))
        changes = int(pc.sum(self._changes.column(SEEN)).as_py() or 0)
        return MergeCounts(
            inserted=inserted,
            updated=updated,
            deleted=deleted,
            superseded=changes - inserted - updated - deleted - nothing,
            ignored=nothing,
        )

    def _to_remember(self, winners: pa.Table, now_ms: int) -> pa.Table:
        """New deletes die now; those that were there before keep their time."""
        wanted = remembered.schema_of(self._columns)
        dead = winners.filter(pc.equal(winners.column(KIND), DELETE))
        fresh = dead.filter(pc.invert(dead.column(FROM_TABLE)))
        names = wanted.names[:-1]
        made = fresh.select(names).append_column(
            wanted.field(DIED), pa.repeat(pa.scalar(now_ms, pa.int64()), fresh.num_rows)
        )
        old = dead.filter(dead.column(FROM_TABLE))
        still = self._graves.filter(
            pc.is_in(key_of_each(self._graves, self._columns.keys), value_set=key_of_each(old, self._columns.keys))
        )
        return pa.concat_tables([self._untouched, still, made.cast(wanted)])


def _told(changes: pa.Table, from_table: bool) -> pa.Table:
    return changes.append_column(FROM_TABLE, pa.repeat(from_table, changes.num_rows))
