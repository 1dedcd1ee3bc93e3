"""Changes into rows, held to a plain model: however they are cut, what wins is what the order of changes says."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.errors import BadOption
from penstock.spark.lake.keyed import graves
from penstock.spark.lake.keyed.buckets import bucket_of_each, bucket_of_file, prefix_of, sort_files
from penstock.spark.lake.keyed.changes import (
    DELETE,
    IGNORED,
    UPSERT,
    ChangeColumns,
    UnfitChange,
    columns_of,
    key_of_each,
)
from penstock.spark.lake.keyed.envelopes import UNAVAILABLE
from penstock.spark.lake.keyed.merging import BucketMerge, KeyTwice, Pending
from penstock.spark.lake.keyed.reduction import check_whole, reduced, settled
from penstock.spark.lake.keyed.settings import KeyedSettings
from penstock.spark.lake.store import MergeCounts, TableFile
from tests.properties import examples
from tests.unit.spark.lake.keyed.model import Change, as_arrow, columns, cut, histories, told, truth

BY_OFFSET, BY_COLUMN = columns(in_log_order=True), columns(in_log_order=False)


def change(
    id: int = 1, *, offset: int, seq: int = 0, name: str | None = "a", kind: int = UPSERT, part: str | None = ""
) -> Change:
    return Change(id, part, name, None, None, seq, 0, offset, kind)


class Bucket:
    """One bucket of a table in memory."""

    def __init__(self, of: ChangeColumns) -> None:
        self.columns = of
        self.rows = of.rows.empty_table()
        self.graves = graves.schema_of(of).empty_table()
        self.now_ms = 0

    def merge(self, changes: list[Change], *, held_bytes: int = 1 << 20) -> MergeCounts:
        pending = Pending(self.columns, held_bytes)
        for each in changes:
            pending.add(as_arrow([each], self.columns))
        before, self.now_ms = self.rows.num_rows, self.now_ms + 1
        merge = BucketMerge(pending.changes(), self.graves, self.columns)
        kept = list(merge.pass_by(self.rows.to_batches(max_chunksize=3)))
        live, died = merge.end(self.now_ms)
        self.rows = pa.concat_tables([pa.Table.from_batches(kept, schema=self.columns.rows), live])
        self.graves = graves.decode(
            {name.encode(): value.encode() for name, value in graves.encode(died).items()}, self.columns
        )
        counts = merge.counts.plus(MergeCounts(ignored=pending.ignored))
        assert counts.changes == len(changes)
        assert self.rows.num_rows == before + counts.rows_more
        return counts


@settings(max_examples=examples(50))
@given(st.data())
def test_a_table_in_the_logs_order_is_what_the_changes_come_to(data: st.DataObject) -> None:
    changes = data.draw(histories(in_log_order=True, gaps=True))
    bucket = Bucket(BY_OFFSET)
    for batch in cut(data.draw, changes):
        data.draw(st.randoms(use_true_random=False)).shuffle(batch)
        bucket.merge(batch, held_bytes=data.draw(st.sampled_from([1, 1 << 20])))
    assert told(bucket.rows) == truth(changes)


@settings(max_examples=examples(50))
@given(st.data())
def test_changes_that_come_late_lose_whichever_batch_they_come_in(data: st.DataObject) -> None:
    changes = data.draw(histories(in_log_order=False, gaps=False))
    bucket = Bucket(BY_COLUMN)
    for batch in cut(data.draw, changes):
        data.draw(st.randoms(use_true_random=False)).shuffle(batch)
        bucket.merge(batch)
    assert told(bucket.rows) == truth(changes)


@given(st.data())
def test_reducing_parts_first_changes_nothing(data: st.DataObject) -> None:
    changes = [each for each in data.draw(histories(in_log_order=False, gaps=True)) if each.kind != IGNORED]
    whole = as_arrow(changes, BY_COLUMN)
    data.draw(st.randoms(use_true_random=False)).shuffle(changes)
    parts = [reduced(as_arrow(part, BY_COLUMN), BY_COLUMN) for part in cut(data.draw, changes)]
    again = reduced(pa.concat_tables(parts), BY_COLUMN)
    found = settled(again, BY_COLUMN)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, settled(whole, BY_COLUMN).to_pylist()))
    assert told(found.filter(pa.compute.equal(found["_kind"], UPSERT))) == truth(changes)
    assert sum(found["_seen"].to_pylist()) == len(changes)


def test_every_change_is_counted_as_one_thing() -> None:
    bucket = Bucket(BY_COLUMN)
    counts = bucket.merge([change(1, offset=0, seq=5), change(1, offset=1, seq=6), change(2, offset=2, seq=9)])
    assert counts == MergeCounts(inserted=2, superseded=1)
    late, gone, nothing = (
        change(1, offset=3, seq=4),
        change(2, offset=4, seq=10, kind=DELETE),
        change(7, offset=5, kind=DELETE),
    )
    skipped = change(8, offset=6, kind=IGNORED)
    assert bucket.merge([late, gone, nothing, skipped]) == MergeCounts(deleted=1, superseded=1, ignored=2)
    assert bucket.merge([change(1, offset=7, seq=7, name="b"), change(2, offset=8, seq=9)]) == MergeCounts(
        updated=1, superseded=1
    )
    assert told(bucket.rows) == {(1, ""): ("b", None, None)}


def test_a_delete_is_forgotten_when_it_is_old() -> None:
    bucket = Bucket(BY_COLUMN)
    bucket.merge([change(1, offset=0, seq=5, kind=DELETE)])
    assert bucket.merge([change(1, offset=1, seq=4)]) == MergeCounts(superseded=1)
    assert bucket.graves["_died_ms"].to_pylist() == [1], "looking at a delete makes it no younger"
    bucket.graves = graves.young(bucket.graves, since_ms=1)
    assert bucket.merge([change(1, offset=2, seq=3)]) == MergeCounts(inserted=1)


def test_a_value_that_was_left_out_stays_what_it_was() -> None:
    bucket = Bucket(BY_OFFSET)
    bucket.merge([change(1, offset=0, name="large")])
    bucket.merge([change(1, offset=1, name=UNAVAILABLE)])
    assert told(bucket.rows) == {(1, ""): ("large", None, None)}
    bucket.merge([change(1, offset=2, kind=DELETE), change(1, offset=3, name=UNAVAILABLE)])
    assert told(bucket.rows) == {(1, ""): (UNAVAILABLE, None, None)}, "what was deleted is no value from before"


@pytest.mark.parametrize(
    ("kind", "left_out", "large"),
    [
        (pa.string(), ["__debezium_unavailable_value"], ["a", "b"]),
        (pa.int64(), list(b"__debezium_unavailable_value"), [1, None]),
        (pa.float64(), [float(each) for each in b"__debezium_unavailable_value"], [0.5]),
    ],
)
def test_a_list_that_was_left_out_stays_what_it_was(kind: pa.DataType, left_out: list[Any], large: list[Any]) -> None:
    places = [("_partition", pa.int32()), ("_offset", pa.int64())]
    rows = pa.schema([("id", pa.int64()), ("many", pa.list_(kind)), *places])
    of = columns_of(KeyedSettings(("id",), cdc="debezium"), rows)
    given = [(1, large), (1, left_out), (2, []), (2, None), (3, left_out), (4, large), (4, [large[0]] * len(left_out))]
    changes = pa.Table.from_pylist(
        [
            {"id": id, "many": many, "_partition": 0, "_offset": offset, "_kind": 0, "_seen": 1}
            for offset, (id, many) in enumerate(given)
        ],
        schema=of.schema,
    )
    found = settled(reduced(changes, of), of)
    told = dict(zip(found["id"].to_pylist(), found["many"].to_pylist(), strict=True))
    assert told == {1: large, 2: None, 3: left_out, 4: [large[0]] * len(left_out)}


def test_what_cannot_be_placed_is_refused_with_its_place() -> None:
    with pytest.raises(
        UnfitChange, match=r"1 changes have no key \(part is null\), the first at topic t, partition 0, offset 4"
    ):
        check_whole(as_arrow([change(offset=3), change(offset=4, part=None)], BY_COLUMN), BY_COLUMN)
    check_whole(as_arrow([change(offset=4, part=None, kind=IGNORED)], BY_COLUMN), BY_COLUMN)
    with pytest.raises(
        UnfitChange, match=r"topic t, partition 0, offset 3 gave two rows of the key \{'id': 1, 'part': ''\}"
    ):
        Bucket(BY_COLUMN).merge([change(offset=3), change(offset=3)])
    moved = [change(offset=3), Change(1, "", "a", None, None, 0, 2, 9)]
    with pytest.raises(UnfitChange, match=r"the key \{'id': 1, 'part': ''\} has changes in partitions 0, 2"):
        Bucket(BY_OFFSET).merge(moved)
    bucket = Bucket(BY_OFFSET)
    bucket.merge(moved[:1])
    with pytest.raises(UnfitChange, match="partitions 0, 2: offsets of different partitions have no order"):
        bucket.merge(moved[1:])


def test_a_row_that_says_not_where_it_is_from_is_older_than_any_change() -> None:
    bucket = Bucket(BY_COLUMN)
    bucket.rows = pa.Table.from_pylist([{"id": 1, "part": "", "name": "theirs"}], schema=BY_COLUMN.rows)
    assert bucket.merge([change(1, offset=0, seq=-9, name="ours")]) == MergeCounts(updated=1)
    assert told(bucket.rows) == {(1, ""): ("ours", None, None)}


def test_a_key_that_another_writer_doubled_stops_the_merge() -> None:
    bucket = Bucket(BY_OFFSET)
    bucket.merge([change(offset=3)])
    bucket.rows = pa.concat_tables([bucket.rows, bucket.rows])
    with pytest.raises(KeyTwice, match=r"one of them \{'id': 1, 'part': ''\}"):
        bucket.merge([change(offset=4)])
    bucket.merge([change(2, offset=5)])


def test_keys_are_told_apart_by_all_their_columns() -> None:
    rows = pa.table({"a": ["ab", "a", None, "1:"], "b": ["c", "bc", "x", ""]})
    assert key_of_each(rows, ["a", "b"]).to_pylist() == [b"2:ab:1:c", b"1:a:2:bc", None, b"2:1::0:"]
    dates = pa.table({"at": pa.array([1], pa.timestamp("ms", "UTC")), "on": pa.array([3], pa.date32())})
    assert key_of_each(dates, ["at", "on"]).to_pylist() == [b"4:1000:1:3"]


def test_files_are_known_by_their_names() -> None:
    name = f"/lake/t/{prefix_of(7, 16, '0' * 32)}-c000.zstd.parquet"
    assert bucket_of_file(name, 16) == 7
    assert bucket_of_file(name, 32) is None
    assert bucket_of_file("/lake/t/part-00000-1234.parquet", 16) is None
    other = TableFile("/lake/t/part-0.parquet", 1, 1)
    found = sort_files([TableFile(name, 1, 1), other], 16)
    assert (sorted(found.of_bucket), found.foreign) == ([7], (other,))


def test_buckets_are_the_same_everywhere() -> None:
    """Files are named by them: another hash would put a key's changes beside its row."""
    rows = pa.table({"id": pa.array(range(6), pa.int64()), "name": ["a", "b", "ü", "", "1", "x"]})
    assert bucket_of_each(rows, ["id"], 16).to_pylist() == [0, 6, 12, 10, 9, 15]
    assert bucket_of_each(rows, ["name", "id"], 1000).to_pylist() == [249, 23, 57, 524, 499, 285]
    spread = bucket_of_each(pa.table({"id": random.Random(1).sample(range(10**9), 16_000)}), ["id"], 16)
    assert max(spread.value_counts().field("counts").to_pylist()) < 1_200


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pa.float64(), "double, which cannot be a key"),
        (pa.decimal128(9, 2), r"decimal128\(9, 2\), which cannot be a key"),
    ],
)
def test_columns_that_cannot_be_keys_are_refused(kind: pa.DataType, words: str) -> None:
    rows = pa.schema([("id", kind), ("_partition", pa.int32()), ("_offset", pa.int64())])
    with pytest.raises(BadOption, match=words):
        columns_of(KeyedSettings(("id",)), rows)
    with pytest.raises(BadOption, match="keys names nr, and the rows have id"):
        columns_of(KeyedSettings(("nr",)), rows)


def test_more_deletes_than_a_bucket_can_remember_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graves, "GRAVES_MOST", 2)
    bucket = Bucket(BY_COLUMN)
    bucket.merge([change(id, offset=id, kind=DELETE) for id in range(2)])
    with pytest.raises(graves.TooManyDeletes, match="raise buckets, or let keep_deletes be shorter"):
        bucket.merge([change(7, offset=7, kind=DELETE)])


def test_settings_travel_in_a_property() -> None:
    made = KeyedSettings(("id", "part"), "at", "op = 'd'", "id = 0", 5, 8, "debezium")
    assert KeyedSettings.of_property(made.to_property()) == made
    with pytest.raises(BadOption, match=r"penstock\.keyed is not understood"):
        KeyedSettings.of_property("{}")
