"""Which commit of a table brought an offset, and whose topics feed it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.admin.rights import Rights
from penstock.console.tables.rights import TableRights, topics_of
from penstock.console.tables.seen import SeenTable
from penstock.console.tables.spans import COMMITS_MAX, SpanIndex
from penstock.console.tables.sql.cells import text_of
from penstock.spark.feed import Feed
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.ranges import RangeKey, TableRange
from penstock.spark.lake.store import APPEND, OTHER, OVERWRITE, Commit
from penstock.spark.lake.warehouse import TableName


def commit(version: int, *ranges: TableRange, kind: str = APPEND, rows: int = 1) -> Commit:
    return Commit(version, 1_000 + version, kind, "q", version, ranges, rows=rows)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.data())
def test_an_offset_is_found_in_the_commit_that_brought_it(lengths: list[int], data: st.DataObject) -> None:
    index, start, brought = SpanIndex(), 5, {}
    for version, length in enumerate(lengths):
        index.put([commit(version, TableRange("t", "id", 0, start, start + length))])
        brought |= dict.fromkeys(range(start, start + length), version)
        start += length
    offset = data.draw(st.integers(0, start + 5))
    found = index.find("t", "id", 0, offset)
    assert (found.version if found else None) == brought.get(offset)
    assert index.find("t", "id", 1, offset) is None
    assert index.find("t", "other", 0, offset) is None


def test_of_offsets_that_came_twice_the_newest_counts() -> None:
    index = SpanIndex()
    index.put([commit(0, TableRange("t", "", 0, 0, 10)), commit(1, TableRange("t", "", 0, 0, 5), kind=OVERWRITE)])
    versions = [found.version for offset in (3, 7) if (found := index.find("t", "", 0, offset))]
    assert (versions, index.replaced_by) == ([1, 0], 1)


def test_what_is_remembered_has_a_bound() -> None:
    index = SpanIndex()
    count = COMMITS_MAX * 2 + 1
    index.put(commit(version, TableRange("t", "id", 0, version, version + 1)) for version in range(count))
    assert len(index.commits()) <= COMMITS_MAX
    assert index.find("t", "id", 0, 0) is None
    newest = index.find("t", "id", 0, count - 1)
    assert newest is not None
    assert newest.version == count - 1


def table(*, feed: Feed | None = None, **about: Any) -> SeenTable:
    found = TableName("t", "delta", "/lake/t", LakeOptions(path="/lake/t"))
    return replace(SeenTable(found, "/lake", "t", feed=feed), **about)


FED = Feed("b:9092", topics=("orders",))
IDS = {"orders": "id-1", "payments": "id-2"}


@pytest.mark.parametrize(
    ("seen", "needed"),
    [
        (table(feed=FED), {"orders"}),
        (table(feed=FED, names={"orders": frozenset(["id-1"])}), {"orders"}),
        (table(feed=FED, names={"payments": frozenset(["id-2"])}), {"orders", "payments"}),
        (table(feed=FED, committed={RangeKey("id-2", 0): 5}), {"orders", "payments"}),
        (table(feed=None, names={"orders": frozenset(["id-1"])}), set()),
        (table(feed=FED, names={"orders": frozenset(["id-9"])}), set()),
        (table(feed=FED, names={"orders": frozenset(["id-1", "id-9"])}), set()),
        (table(feed=FED, names={"gone": frozenset([""])}), set()),
        (table(feed=FED, names={"table:silver": frozenset(["x"])}), set()),
        (table(feed=FED, committed={RangeKey("id-9", 0): 5}), set()),
        (table(feed=FED, unexplained=True), set()),
        (table(feed=FED, problem="it burst"), set()),
        (table(feed=Feed("b:9092", pattern="ord.*")), set()),
    ],
)
def test_a_table_needs_all_its_topics_or_nobody_knows(seen: SeenTable, needed: set[str]) -> None:
    assert topics_of(seen, IDS) == needed
    all_topics = {name: frozenset(["read"]) for name in IDS}
    assert TableRights.of(Rights(frozenset(), all_topics), IDS).may_read(seen) is bool(needed)
    # Whoever may alter the cluster could give themselves any right.
    assert TableRights.of(Rights(frozenset(["alter"])), IDS).may_read(seen)
    one = Rights(frozenset(["describe"]), {"orders": frozenset(["read"]), "payments": frozenset(["describe"])})
    assert TableRights.of(one, IDS).may_read(seen) is (needed == {"orders"})


def test_a_batch_that_says_of_no_topic_where_its_rows_are_from_is_remembered() -> None:
    index = SpanIndex()
    index.put([commit(0, kind=OTHER), commit(1, rows=0)])
    assert not index.unexplained
    index.put([commit(2)])
    assert index.unexplained


def test_cells_have_all_their_digits() -> None:
    from decimal import Decimal

    assert text_of((1 << 63) - 1) == "9223372036854775807"
    assert text_of(Decimal("1E+30")) == "1" + "0" * 30
    assert text_of([1 << 60, None, {"a": Decimal("0.10")}]) == '[1152921504606846976, null, {"a": "0.10"}]'
    assert (text_of(None), text_of(True), text_of(b"\xff"), text_of(0.1)) == (None, "true", "ff", "0.1")
