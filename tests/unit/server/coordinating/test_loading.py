"""A log of the offsets topic, replayed."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from penstock.coordinators.decision import StateRecord
from penstock.kernels import Record, read_header
from penstock.model.ids import ZERO_UUID, Epoch, Millis, TopicPartition
from penstock.protocol.batch import build_batch, read_records
from penstock.protocol.control import Marker, marker_batch
from penstock.protocol.disk.classic_group_records import OffsetCommitKey, OffsetCommitValue
from penstock.protocol.wire import Malformed
from penstock.server.coordinating.groups import GROUP_READER
from penstock.server.coordinating.loading import Replay
from penstock.server.coordinating.records import encode_batch
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles

NOW = Millis(1_700_000_000_000)
LOG = logging.getLogger("penstock.tests")


class Told:
    """A shard that writes down what it is told."""

    def __init__(self) -> None:
        self.records: list[StateRecord] = []
        self.heard: list[tuple[Any, ...]] = []

    def apply(self, record: StateRecord, offset: int) -> None:
        self.records.append(record)
        self.heard.append((offset, "counts", number_of(record)))

    def apply_pending(self, producer_id: int, record: StateRecord, offset: int) -> None:
        self.heard.append((offset, f"pending of {producer_id}", number_of(record)))

    def on_marker(self, producer_id: int, *, committed: bool) -> None:
        self.heard.append((f"{producer_id} ends", committed))


def number_of(record: StateRecord) -> Any:
    return None if record.value is None else record.value.offset


def offset(number: int, group: str = "g") -> StateRecord:
    key = OffsetCommitKey(group=group, topic="t", partition=0)
    return StateRecord(key, OffsetCommitValue(offset=number, metadata="", commit_timestamp=NOW), 4)


def a_log(*batches: bytes | bytearray) -> Log:
    log = Log.create(
        MemoryFiles(), "/d", TopicPartition("__consumer_offsets", 0), ZERO_UUID, PlainLogSettings(), now=NOW
    )
    for batch in batches:
        log.append(bytearray(batch), read_header(batch), epoch=Epoch(0), now=NOW)
    return log


def replayed(log: Log) -> Told:
    told = Told()
    for _ in Replay(log, GROUP_READER, told, LOG).steps():
        pass
    return told


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_what_was_written_is_what_is_replayed(codec: int) -> None:
    written = [offset(1), StateRecord(offset(1).key, None), offset(2, "h")]
    log = a_log(encode_batch(written, NOW, codec), encode_batch([offset(3)], NOW, codec))
    told = Told()
    steps = list(Replay(log, GROUP_READER, told, LOG).steps())
    assert told.records == [written[0], StateRecord(written[1].key, None), written[2], offset(3)]
    assert [heard[0] for heard in told.heard] == [0, 1, 2, 3], "each record comes with its place in the log"
    assert len(steps) >= 2, "it pauses at every batch"


def test_nothing_is_replayed_from_an_empty_log() -> None:
    assert replayed(a_log()).heard == []


def test_a_shard_is_told_of_transactions_in_the_order_of_the_log_and_of_those_that_are_still_open() -> None:
    def transactional(producer_id: int, *records: StateRecord) -> bytes:
        plain = encode_batch(records, NOW, 0)
        header = read_header(plain)
        return build_batch(
            read_records(plain), producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True,
            base_offset=header.base_offset,
        )  # fmt: skip

    def ends(producer_id: int, *, committed: bool) -> bytes:
        return marker_batch(
            Marker(committed, 0), base_offset=0, leader_epoch=0, timestamp=NOW, producer_id=producer_id,
            producer_epoch=0,
        )  # fmt: skip

    log = a_log(
        transactional(7, offset(1)),
        transactional(8, offset(2)),
        encode_batch([offset(3)], NOW, 0),
        ends(8, committed=False),
        ends(7, committed=True),
        transactional(9, offset(4)),
    )
    assert replayed(log).heard == [
        (0, "pending of 7", 1),
        (1, "pending of 8", 2),
        (2, "counts", 3),
        ("8 ends", False),
        ("7 ends", True),
        (5, "pending of 9", 4),
    ]


def test_records_of_a_later_release_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    unknown = build_batch([Record(0, NOW, b"\x7f\x00later", b"value")])
    with caplog.at_level(logging.WARNING):
        assert replayed(a_log(unknown, encode_batch([offset(5)], NOW, 0))).heard == [(1, "counts", 5)]
    assert "1 records of unknown types" in caplog.text


@pytest.mark.parametrize(("key", "value"), [(None, b""), (b"\0", b""), (b"\0\1\0", b""), (b"\0\2\0\1g", b"\0")])
def test_bytes_that_are_no_record_are_refused(key: bytes | None, value: bytes) -> None:
    with pytest.raises(Malformed):
        GROUP_READER.read(key, value)
