"""Partitions take turns, and what was lent can be taken back."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.client.consumer.inbox import Inbox
from penstock.client.consumer.metrics import ConsumerMetrics
from penstock.client.consumer.partition import AssignedPartition, CorruptBatch, Phase
from penstock.kernels import ConsumerRecord
from penstock.model.ids import TopicPartition
from tests.unit.client.consumer.made import batch, opened, partition_at, spoilt


def inbox_of(*partitions: AssignedPartition) -> Inbox:
    inbox = Inbox(ConsumerMetrics())
    for partition in partitions:
        inbox.arrived(partition)
    return inbox


def named(name: str, *batches: bytes) -> AssignedPartition:
    made = AssignedPartition(TopicPartition(name, 0))
    made.place(0)
    made.put(opened(*batches))
    return made


def seen(records: list[ConsumerRecord]) -> list[tuple[str, int]]:
    return [(record.topic, record.offset) for record in records]


def test_a_poll_ends_in_the_middle_of_a_batch_and_the_next_goes_on_there() -> None:
    partition = partition_at(1, batch(0, 4), batch(4, 2))
    inbox = inbox_of(partition)
    assert [r.offset for r in inbox.take(2)] == [1, 2]
    assert partition.position == 3
    assert [r.offset for r in inbox.take(9)] == [3, 4, 5]
    assert (partition.position, partition.buffered_bytes, inbox.take(9)) == (6, 0, [])


def test_whoever_gave_goes_to_the_end_of_the_line() -> None:
    inbox = inbox_of(named("a", batch(0, 4)), named("b", batch(0, 4)))
    assert seen(inbox.take(2)) == [("a", 0), ("a", 1)]
    assert seen(inbox.take(2)) == [("b", 0), ("b", 1)]
    assert seen(inbox.take(3)) == [("a", 2), ("a", 3), ("b", 2)]


def test_the_paused_and_the_leaving_give_nothing() -> None:
    one, other = named("a", batch(0)), named("b", batch(0))
    inbox = inbox_of(one, other)
    one.paused = other.leaving = True
    assert inbox.take(9) == []
    one.paused = False
    inbox.arrived(one)
    assert seen(inbox.take(9)) == [("a", 0)]


def test_what_a_loop_has_not_seen_goes_back_to_its_place() -> None:
    one, other = named("a", batch(0, 2), batch(2, 2, epoch=1)), named("b", batch(0, 2))
    inbox = inbox_of(one, other)
    (lent,) = inbox.lend(9)
    assert seen([next(lent), next(lent), next(lent)]) == [("a", 0), ("a", 1), ("a", 2)]
    inbox.recall()
    assert list(lent) == []
    assert (one.position, one.position_epoch, other.position) == (3, 1, 0)
    assert sorted(seen(inbox.take(9))) == [("a", 3), ("b", 0), ("b", 1)]


def test_taking_back_before_the_first_and_after_the_last_changes_nothing() -> None:
    partition = partition_at(0, batch(0, 3))
    inbox = inbox_of(partition)
    inbox.lend(9)
    inbox.recall()
    assert (partition.position, partition.position_epoch) == (0, -1)
    (lent,) = inbox.lend(9)
    assert [r.offset for r in lent] == [0, 1, 2]
    inbox.recall()
    assert partition.position == 3
    assert inbox.take(9) == []


def test_what_was_lent_before_a_seek_does_not_come_back() -> None:
    partition = partition_at(0, batch(0, 3))
    inbox = inbox_of(partition)
    (lent,) = inbox.lend(9)
    next(lent)
    partition.place(50)
    inbox.recall()
    assert (partition.position, inbox.take(9)) == (50, [])


def test_records_before_a_broken_batch_are_given_first() -> None:
    partition = partition_at(0, batch(0, 2), spoilt(batch(2, 2)), batch(4))
    inbox = inbox_of(partition)
    assert [r.offset for r in inbox.take(9)] == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptBatch, match=r"t-0: the records at offset 2 .*; seek to 4 to leave them out"):
            inbox.take(9)
    partition.place(4)
    assert partition.phase is Phase.READY


def test_one_partition_that_fails_does_not_keep_the_others_from_being_read() -> None:
    bad, good = named("bad", spoilt(batch(0))), named("good", batch(0))
    inbox = inbox_of(bad, good)
    assert seen(inbox.take(9)) == [("good", 0)]
    with pytest.raises(CorruptBatch):
        inbox.take(9)


def test_columns_hold_what_records_hold() -> None:
    inbox = inbox_of(named("a", batch(0, 3), batch(3, 2)), named("b", batch(0, 1)))
    first, second = inbox.pour(9)
    for table in (first, second):
        table.validate(full=True)
    assert first.schema.field("timestamp").type == pa.timestamp("ms", tz="UTC")
    assert first.column("offset").to_pylist() == [0, 1, 2, 3, 4]
    assert first.column("key").to_pylist() == [b"k0", b"k1", b"k2", b"k3", b"k4"]
    assert first.column("topic").to_pylist() == ["a"] * 5
    assert second.to_pylist()[0]["headers"] == []


def test_columns_and_records_may_be_asked_for_in_turn() -> None:
    partition = partition_at(0, batch(0, 6))
    inbox = inbox_of(partition)
    assert [r.offset for r in inbox.take(2)] == [0, 1]
    assert inbox.pour(2)[0].column("offset").to_pylist() == [2, 3]
    assert partition.position == 4
    assert [r.offset for r in inbox.take(9)] == [4, 5]


def test_a_broken_batch_ends_columns_as_it_ends_records() -> None:
    inbox = inbox_of(partition_at(0, batch(0, 2), spoilt(batch(2))))
    assert inbox.pour(9)[0].num_rows == 2
    with pytest.raises(CorruptBatch):
        inbox.pour(9)
