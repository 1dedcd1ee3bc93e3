"""Where reading begins: what wishes come to when the cluster has answered."""

from __future__ import annotations

import pytest

from penstock.model.ids import TopicPartition
from penstock.spark.errors import BadOption, Missing
from penstock.spark.offsets import EARLIEST, LATEST
from penstock.spark.source.starts import NO_OFFSET, Place, by_time, by_times, by_word_or_json

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def test_words_stay_wishes() -> None:
    assert by_word_or_json("startingOffsets", " Earliest ", otherwise=LATEST).resolve([T0], {}, {}) == {T0: EARLIEST}
    assert by_word_or_json("startingOffsets", "latest", otherwise=EARLIEST).resolve([T0], {}, {}) == {T0: LATEST}


def test_json_may_have_wishes_and_leave_some_out() -> None:
    place = by_word_or_json("startingOffsets", '{"t": {"0": 7, "1": -2}}', otherwise=LATEST)
    assert place.resolve([T0, T1, T2], {}, {}) == {T0: 7, T1: EARLIEST, T2: LATEST}


def test_only_times_are_looked_up() -> None:
    place = by_times("startingOffsetsByTimestamp", '{"t": {"0": 1000}}', otherwise=LATEST, unmatched=None)
    assert place.times_for([T0, T1]) == {T0: 1000}
    assert place.resolve([T0, T1], {T0: 5}, {}) == {T0: 5, T1: LATEST}
    assert by_time("startingTimestamp", "9", unmatched=None).times_for([T0, T1]) == {T0: 9, T1: 9}
    assert Place("startingOffsets", offsets={T0: 3}).times_for([T0, T1]) == {}


def test_a_time_that_nothing_is_as_late_as_is_an_error_unless_latest_was_chosen() -> None:
    with pytest.raises(Missing, match=r"t-0 has no record at or after 9 ms.*startingOffsetsByTimestampStrategy=latest"):
        by_time("startingTimestamp", "9", unmatched=None).resolve([T0], {T0: NO_OFFSET}, {})
    assert by_time("startingTimestamp", "9", unmatched=LATEST).resolve([T0], {T0: NO_OFFSET}, {}) == {T0: LATEST}


def test_a_table_says_where_it_stands_and_what_it_never_saw_is_read_whole() -> None:
    place = by_word_or_json("startingOffsets", "table:/lake/orders", otherwise=LATEST)
    assert place.table == "/lake/orders"
    assert place.resolve([T0, T1], {}, {T0: 12}) == {T0: 12, T1: EARLIEST}


def test_partitions_that_were_named_must_be_read() -> None:
    place = by_word_or_json("startingOffsets", '{"t": {"0": 7, "2": 8}}', otherwise=LATEST)
    place.check_named([T0, T1, T2])
    with pytest.raises(BadOption, match="startingOffsets names t-2, which this query does not read; it reads t-0, t-1"):
        place.check_named([T0, T1])
