"""What a batch has read, from Spark's own log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.spark.errors import Missing
from penstock.spark.lake.offset_log import query_id_of, ranges_of
from penstock.spark.lake.ranges import TableRange
from tests.unit.spark.lake.queries import TOPIC_ID, Query, offset_line


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path, tmp_path / "table")


def spans(query: Query, batch_id: int) -> list[tuple[str, int, int, int, int]]:
    found = ranges_of(str(query.checkpoint), batch_id).ranges
    return [(each.topic, each.partition, each.start, each.end, each.ordinal) for each in found]


def test_the_first_batch_has_its_start_beside_its_end(query: Query) -> None:
    query.plan(0, offset_line(10, 7, starts=[2, 7], bootstrap="broker:9092"))
    found = ranges_of(str(query.checkpoint), 0)
    assert found.ranges == (TableRange("orders", TOPIC_ID, 0, 2, 10),)
    assert (found.bootstraps, found.timestamp_ms) == (("broker:9092",), 1_700_000_000_000)


def test_a_later_batch_begins_where_the_one_before_ended(query: Query) -> None:
    query.plan(6, offset_line(10, 7))
    query.plan(7, offset_line(12, 7))
    assert spans(query, 7) == [("orders", 0, 10, 12, 0)]


def test_sources_that_are_not_ours_are_passed_over(query: Query) -> None:
    query.plan(0, "-", '{"seq":3}', "17", offset_line(5, starts=[0]), json.dumps({"jvm": {"0": 9}}))
    assert spans(query, 0) == [("orders", 0, 0, 5, 0)]


def test_the_second_reader_of_a_topic_has_a_position_of_its_own(query: Query) -> None:
    query.plan(0, offset_line(5, starts=[0]), offset_line(3, starts=[0], topic="clicks"), offset_line(4, starts=[1]))
    query.plan(1, offset_line(5), offset_line(6, topic="clicks"), offset_line(8))
    assert spans(query, 0) == [("orders", 0, 0, 5, 0), ("clicks", 0, 0, 3, 0), ("orders", 0, 1, 4, 1)]
    assert spans(query, 1) == [("clicks", 0, 3, 6, 0), ("orders", 0, 4, 8, 1)]


def test_named_sources_of_the_second_layout_are_found_by_name(query: Query) -> None:
    for batch, ends in ((3, (5, 2)), (4, (9, 6))):
        lines = [f"b:{offset_line(ends[1], topic='clicks')}", f"10:{offset_line(ends[0])}", "9:-", 'x:{"seq":1}']
        (query.checkpoint / "offsets" / str(batch)).write_text(
            "\n".join(["v2", "{}", *lines[:: 1 if batch == 3 else -1]])
        )
    assert spans(query, 4) == [("orders", 0, 5, 9, 0), ("clicks", 0, 2, 6, 0)]


def test_a_log_that_begins_with_anything_else_is_refused(query: Query) -> None:
    (query.checkpoint / "offsets" / "0").write_text("v3\n{}\n")
    with pytest.raises(Missing, match="'v3'"):
        ranges_of(str(query.checkpoint), 0)


def test_nothing_is_guessed_where_the_log_has_a_hole(query: Query) -> None:
    query.plan(5, offset_line(10))
    with pytest.raises(Missing, match="offsets/4"):
        ranges_of(str(query.checkpoint), 5)
    query.plan(5, offset_line(10, starts=[4]))
    assert spans(query, 5) == [("orders", 0, 4, 10, 0)]


def test_a_checkpoint_may_be_a_uri(query: Query) -> None:
    query.plan(0, offset_line(10, starts=[0]))
    for place in (query.checkpoint.as_uri(), f"file:{query.checkpoint}", f"{query.checkpoint}/"):
        assert len(ranges_of(place, 0).ranges) == 1
        assert query_id_of(place) == query.id


def test_a_checkpoint_without_metadata_says_so(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="is it the directory of this query"):
        query_id_of(str(tmp_path))
