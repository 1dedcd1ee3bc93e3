"""Control records and transaction markers."""

from __future__ import annotations

import pytest

from penstock.kernels import Record, check_batch
from penstock.protocol.batch import CONTROL, TRANSACTIONAL, read_records
from penstock.protocol.control import (
    ABORT,
    COMMIT,
    LEADER_CHANGE,
    SNAPSHOT_HEADER,
    Marker,
    control_batch,
    marker_batch,
    read_control,
    read_marker,
)
from penstock.protocol.wire import Malformed


def test_a_control_batch_holds_typed_entries() -> None:
    batch = control_batch(
        [(LEADER_CHANGE, b"who"), (SNAPSHOT_HEADER, b"")], base_offset=40, leader_epoch=3, timestamp=9_000
    )
    header, _ = check_batch(batch, 0)
    assert (header.attributes, header.base_offset, header.last_offset, header.leader_epoch) == (CONTROL, 40, 41, 3)
    records = read_records(batch)
    assert records[0] == Record(40, 9_000, b"\x00\x00\x00\x02", b"who")
    assert [read_control(record) for record in records] == [(LEADER_CHANGE, b"who"), (SNAPSHOT_HEADER, b"")]
    assert [read_marker(record) for record in records] == [None, None]


@pytest.mark.parametrize("marker", [Marker(True, 7), Marker(False, 0)])
def test_a_marker_ends_a_transaction(marker: Marker) -> None:
    batch = marker_batch(marker, base_offset=5, leader_epoch=1, timestamp=10, producer_id=99, producer_epoch=2)
    header, _ = check_batch(batch, 0)
    assert header.attributes == CONTROL | TRANSACTIONAL
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.record_count) == (99, 2, -1, 1)
    (record,) = read_records(batch)
    assert read_control(record)[0] == (COMMIT if marker.committed else ABORT)
    assert record.value == b"\x00\x00" + marker.coordinator_epoch.to_bytes(4, "big")
    assert read_marker(record) == marker


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b""), (b"\x00\x00\x00", b""), (b"\xff\xff\x00\x00", b""), (b"\x00\x00\x00\x01", b"\x00\x00\x00")],
)
def test_a_control_record_that_says_nothing_is_malformed(key: bytes | None, value: bytes) -> None:
    with pytest.raises(Malformed):
        read_marker(Record(0, 0, key, value))


def test_a_later_type_is_told_as_it_is() -> None:
    assert read_control(Record(0, 0, b"\x00\x00\x00\x63", b"new")) == (99, b"new")
