"""Control batches: what a node writes into a log for other nodes and for readers, never for applications.

The key of a control record names its type. Transactions end with a marker (COMMIT or ABORT); the quorum's own records
are in the same form. A control batch takes offsets like any other, so readers skip its records but count them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.kernels import Record
from penstock.protocol.batch import build_batch
from penstock.protocol.wire import Malformed

ABORT: Final = 0
COMMIT: Final = 1
LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6

_KEY: Final = struct.Struct(">hh")
_MARKER: Final = struct.Struct(">hi")
_KEY_VERSION: Final = 0
_MARKER_VERSION: Final = 0


class Marker(NamedTuple):
    """How a transaction ended, and the epoch of the coordinator that said so."""

    committed: bool
    coordinator_epoch: int


def control_batch(
    entries: Sequence[tuple[int, bytes]],
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    transactional: bool = False,
) -> bytes:
    """One control batch of (type, value) entries with consecutive offsets."""
    records = [
        Record(base_offset + index, timestamp, _KEY.pack(_KEY_VERSION, kind), value)
        for index, (kind, value) in enumerate(entries)
    ]
    return build_batch(
        records,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=transactional,
        control=True,
    )


def marker_batch(
    marker: Marker, *, base_offset: int, leader_epoch: int, timestamp: int, producer_id: int, producer_epoch: int
) -> bytes:
    """The batch that ends a producer's transaction in one partition."""
    return control_batch(
        [(COMMIT if marker.committed else ABORT, _MARKER.pack(_MARKER_VERSION, marker.coordinator_epoch))],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
    )


def control_type(key: bytes | None) -> int:
    """The type in a control record's key. Types that came later than us are given as they are."""
    if key is None or len(key) < _KEY.size:
        raise Malformed("a control record has a key of at least four bytes")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise Malformed(f"control key version {version} is negative")
    return int(kind)


def read_control(record: Record) -> tuple[int, bytes]:
    """(type, value) of a control record."""
    return control_type(record.key), record.value or b""


def read_marker(record: Record) -> Marker | None:
    """The marker in a control record, or None when it is a control record of another type."""
    kind, value = read_control(record)
    if kind not in (ABORT, COMMIT):
        return None
    if len(value) < _MARKER.size:
        raise Malformed("a transaction marker has at least six bytes")
    version, coordinator_epoch = _MARKER.unpack_from(value)
    if version < 0:
        raise Malformed(f"marker version {version} is negative")
    return Marker(kind == COMMIT, coordinator_epoch)
