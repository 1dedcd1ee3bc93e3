"""What Spark's offset log holds for us."""

from __future__ import annotations

import json

from penstock.model.ids import TopicPartition
from penstock.spark.offsets import EARLIEST, Range, StreamOffset

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_an_offset_survives_the_log() -> None:
    offset = StreamOffset({A1: 7, A0: 5}, {"a": "id"}, {A0: 3}, {A0: 1}, "localhost:9092", "q", quiet=True)
    assert StreamOffset.of_json(json.dumps(offset.to_json())) == offset


def test_the_part_by_topic_is_what_the_jvm_connector_writes() -> None:
    assert StreamOffset({A0: 5, A1: 7}).to_json() == {"a": {"0": 5, "1": 7}}


def test_an_offset_of_the_jvm_connector_is_read() -> None:
    assert StreamOffset.of_json('{"a":{"1":7,"0":5}}').ends == {A0: 5, A1: 7}
    assert not StreamOffset.is_ours({"a": {"0": 5}})


def test_a_batch_begins_where_the_one_before_ended() -> None:
    before = StreamOffset({A0: 5, A1: 7}, {"a": "id"})
    now = StreamOffset({A0: 9, A1: 7}, {"a": "id"}, {A0: 2})
    assert list(now.ranges_after(before)) == [Range("a", "id", 0, 5, 9, 2)]


def test_the_first_batch_begins_where_the_source_says() -> None:
    before = StreamOffset({A0: EARLIEST})
    now = StreamOffset({A0: 9}, {"a": "id"}, starts={A0: 4})
    assert list(now.ranges_after(before)) == list(now.ranges_after(None)) == [Range("a", "id", 0, 4, 9)]


def test_a_batch_for_which_only_time_has_passed_has_read_nothing() -> None:
    first = StreamOffset({A0: 9}, {"a": "id"}, starts={A0: 4})
    assert list(first.ranges_after(StreamOffset.of_json(first.to_json()))) == []
