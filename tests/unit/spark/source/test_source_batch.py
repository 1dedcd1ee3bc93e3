"""What a batch read plans, with the cluster's answers as plain numbers."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import cast

import pytest
from pyspark.sql.types import StructType

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition
from penstock.spark.errors import DataLost
from penstock.spark.source import facts
from penstock.spark.source.batch import TopicBatchReader, plan_batch
from penstock.spark.source.facts import Cluster
from penstock.spark.source.losses import Seen
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.tasks import TaskSpans

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SEEN = Seen(ids={"t": "ID"}, ends={T0: 100, T1: 50})


class Answers:
    """A cluster that answers from a table."""

    def __init__(self, _: object = None) -> None:
        self.starts = {T0: 10, T1: 0}

    def look(self, *, expected: Collection[str] = (), strict: bool = False) -> Seen:
        assert strict, "what was named must be there"
        return SEEN

    def reaching(self, seen: Seen, places: Mapping[TopicPartition, int]) -> Seen:
        return seen.reaching(places, {T0: 120, T1: 50})

    def log_starts(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.starts[tp] for tp in partitions}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {tp: time_ms if time_ms < SEEN.ends[tp] else -1 for tp, time_ms in times_ms.items()}

    def bytes_per_offset(self, topics: Collection[str]) -> dict[TopicPartition, float]:
        return {}


def options(**given: str) -> SourceOptions:
    return SourceOptions.of({"kafka.bootstrap.servers": "here:1", "subscribe": "t", **given}, streaming=False)


def planned(**given: str) -> dict[TopicPartition, tuple[int, int]]:
    spans = plan_batch(options(**given), cast(Cluster, Answers()))
    assert {span.topic_id for span in spans} <= {"ID"}
    return {span.tp: (span.start, span.end) for span in spans}


def offsets(**by_partition: int) -> str:
    return json.dumps({"t": {name.removeprefix("p"): offset for name, offset in by_partition.items()}})


def test_all_there_is_by_default() -> None:
    assert planned() == {T0: (10, 100), T1: (0, 50)}


def test_from_and_to_by_number_and_wish() -> None:
    found = planned(startingOffsets=offsets(p0=20, p1=-2), endingOffsets=offsets(p0=30, p1=-1))
    assert found == {T0: (20, 30), T1: (0, 50)}


def test_times_that_nothing_is_as_late_as_end_at_the_end() -> None:
    assert planned(startingTimestamp="40", endingTimestamp="60") == {T0: (40, 60), T1: (40, 50)}


def test_a_start_after_the_end_is_nothing() -> None:
    assert planned(startingOffsets=offsets(p0=60), endingOffsets=offsets(p0=60)) == {T1: (0, 50)}
    assert planned(startingOffsets=offsets(p0=70), endingOffsets=offsets(p0=60)) == {T1: (0, 50)}


def test_offsets_in_an_open_transaction_are_waited_for_and_no_loss() -> None:
    # What is committed of partition 0 ends at 100, its log at 120.
    assert planned(endingOffsets=offsets(p0=120)) == {T0: (10, 120), T1: (0, 50)}
    assert planned(startingOffsets=offsets(p0=110)) == {T1: (0, 50)}
    assert planned(startingOffsets=offsets(p0=110), endingOffsets=offsets(p0=115)) == {T0: (110, 115), T1: (0, 50)}
    with pytest.raises(DataLost, match="t-0 ends at 100, before 121"):
        planned(endingOffsets=offsets(p0=121))


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
def test_offsets_that_the_log_does_not_reach_are_a_loss(option: str) -> None:
    with pytest.raises(DataLost, match=f"t-1 ends at 50, before 70 where {option} has it"):
        planned(**{option: offsets(p1=70)})
    careless = planned(failOnDataLoss="false", **{option: offsets(p1=70)})
    assert careless == ({T0: (10, 100)} if option == "startingOffsets" else {T0: (10, 100), T1: (0, 50)})


def test_a_read_of_nothing_has_a_task_that_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "Cluster", Answers)
    nothing = options(startingOffsets=offsets(p0=100, p1=50))
    assert TopicBatchReader(nothing, StructType()).partitions() == [TaskSpans()]
    (task,) = TopicBatchReader(options(), StructType()).partitions()
    assert task == TaskSpans((Span("t", "ID", 0, 10, 100), Span("t", "ID", 1, 0, 50)))
