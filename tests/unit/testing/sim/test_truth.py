"""What retention, DeleteRecords and compaction may take, and nothing more."""

from __future__ import annotations

from penstock.kernels import Record
from penstock.model.config import TopicSettings
from penstock.model.ids import PartitionKey, TopicPartition, Uuid
from penstock.testing.sim.truth import ALL, PartitionTruth, Truth

ID = Uuid(bytes(15) + b"\x07")
NOW_MS = 10_000


def record(offset: int, key: bytes = b"k", value: bytes | None = b"v") -> Record:
    return Record(offset, 1_000 * offset, key, value)


def kept(truth: Truth, topic: str = "t", count: int = 5) -> PartitionTruth:
    """Five records, a second apart from each other; the last is five seconds old."""
    partition = truth.of(PartitionKey(ID, 0), TopicPartition(topic, 0))
    partition.learn([record(offset, b"%d" % offset) for offset in range(count)], count, 0.0)
    return partition


def settings(**overrides: str) -> TopicSettings:
    return TopicSettings.of({name.replace("_", "."): value for name, value in overrides.items()}, {})


def test_a_log_may_begin_later_only_behind_records_that_are_too_old() -> None:
    partition, brief = kept(Truth()), settings(retention_ms="6500")
    assert partition.objection(4, brief, 100, NOW_MS) is None
    assert partition.objection(5, brief, 100, NOW_MS) == (
        "t-0 begins at 5: nobody asked for it, 100 bytes are left of -1, and the youngest record before is "
        "6000 ms old of 6500"
    )


def test_a_log_may_begin_later_when_enough_bytes_are_left() -> None:
    small = settings(retention_bytes="100")
    assert kept(Truth()).objection(3, small, 100, NOW_MS) is None
    assert kept(Truth()).objection(3, small, 99, NOW_MS) is not None


def test_a_log_that_only_compacts_keeps_its_beginning() -> None:
    assert kept(Truth()).objection(3, settings(cleanup_policy="compact", retention_ms="1"), 0, NOW_MS) is not None


def test_where_one_replica_rightfully_begins_every_other_may() -> None:
    partition = kept(Truth())
    assert partition.objection(3, settings(retention_ms="1"), 0, NOW_MS) is None
    assert partition.objection(3, settings(), 0, NOW_MS) is None
    assert partition.objection(4, settings(), 0, NOW_MS) is not None


def test_deletion_by_order_takes_as_much_as_was_asked_for() -> None:
    truth = Truth()
    partition = kept(truth)
    truth.allow_deletion("t", 0, 2)
    assert partition.objection(2, settings(), 0, NOW_MS) is None
    assert partition.objection(3, settings(), 0, NOW_MS) is not None


def test_deletion_of_everything_ends_with_its_answer() -> None:
    truth = Truth()
    partition = kept(truth)
    over = truth.allow_deletion("t", 0, ALL)
    over()
    partition.learn([record(5)], 6, 0.0)
    assert partition.objection(5, settings(), 0, NOW_MS) is None
    assert partition.objection(6, settings(), 0, NOW_MS) is not None


def test_what_was_committed_and_taken_within_one_instant_may_have_been_anything() -> None:
    partition, brief = kept(Truth()), settings(retention_ms="1")
    assert partition.objection(7, brief, 0, NOW_MS) is None
    assert (partition.start, partition.end) == (7, 7)
    assert [offset for offset in range(9) if partition.may_have_been(offset, b"v")] == [0, 1, 2, 3, 4, 5, 6]
    assert [offset for offset in range(9) if partition.may_have_been(offset, b"other")] == [5, 6]


def test_what_another_replica_still_has_is_known_after_all() -> None:
    partition = kept(Truth())
    assert partition.objection(7, settings(retention_ms="1"), 0, NOW_MS) is None
    partition.learn([record(5), record(6)], 7, 0.0)
    assert [offset for offset in range(9) if partition.may_have_been(offset, b"other")] == []


def test_a_record_that_a_replica_lacks_is_found() -> None:
    partition = kept(Truth())
    there = {offset: record(offset, b"%d" % offset) for offset in (0, 1, 3, 4)}
    assert partition.missing(there, 0, 5, 0.0) == ["t-0@2 was b'v' of key b'2' and is lost"]
    assert partition.missing(there, 3, 5, 0.0) == []


def test_compaction_may_take_what_has_a_later_record_of_its_key_and_no_other() -> None:
    partition = kept(Truth(), "keyed", 3)
    partition.learn([record(3, b"1")], 4, 0.0)
    there = {offset: record(offset, b"%d" % offset) for offset in (2,)} | {3: record(3, b"1")}
    assert partition.missing(there, 0, 4, 0.0) == ["keyed-0@0 was b'v' of key b'0' and is lost"]


def test_a_tombstone_may_go_when_its_time_is_over() -> None:
    partition = kept(Truth(), "keyed", 0)
    partition.learn([record(0, b"k", None)], 1, 7.0)
    assert partition.missing({}, 0, 1, 7.0) == []
    assert len(partition.missing({}, 0, 1, 6.9)) == 1
