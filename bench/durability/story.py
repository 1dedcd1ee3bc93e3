"""What happened to a cluster, as its metadata log tells it: controllers elected, brokers fenced, replicas out of sync.

Penstock and Apache Kafka write the same records, so one reading serves both, and nothing that happened between two
looks is missed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.metadata.records import unframe_record
from penstock.protocol.batch import read_header, read_records
from penstock.protocol.control import LEADER_CHANGE, control_type
from penstock.protocol.disk.metadata_brokers import BrokerRegistrationChangeRecord, FenceBrokerRecord
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord
from tests.faults.cluster.replicas import stored

METADATA_DIRECTORY = "__cluster_metadata-0"
_CONTROL_BIT = 0x20
_FENCED = 1
_LEADER_STAYS = -2


@dataclass(frozen=True)
class Story:
    """Counts of one stretch of the log."""

    controllers_elected: int = 0
    epochs: int = 0
    brokers_fenced: int = 0
    isr_changes: int = 0
    leader_changes: int = 0


class MetadataLog:
    """The metadata log in a node's data directory, read as its files are; the node may run."""

    def __init__(self, data_dir: Path) -> None:
        self._directory = data_dir / METADATA_DIRECTORY

    def end(self) -> int:
        return max((end for _base, end, _batch in stored(self._directory, growing=True)), default=0)

    def since(self, offset: int) -> Story:
        """What it tells from an offset on."""
        before = [batch for _base, end, batch in stored(self._directory, growing=True) if end <= offset]
        after = [batch for base, _end, batch in stored(self._directory, growing=True) if base >= offset]
        return told(after, epoch=_epoch(before[-1]) if before else 0)


def told(batches: Iterable[bytes], *, epoch: int) -> Story:
    """What these batches tell; `epoch` is that of the batch before them."""
    elected = fenced = isr_changes = leader_changes = 0
    last_epoch = epoch
    for batch in batches:
        last_epoch = _epoch(batch)
        if read_header(batch).attributes & _CONTROL_BIT:
            elected += sum(control_type(record.key) == LEADER_CHANGE for record in read_records(batch))
            continue
        for record in _records(batch):
            if isinstance(record, PartitionChangeRecord):
                isr_changes += record.isr is not None
                leader_changes += record.leader != _LEADER_STAYS
            fenced += isinstance(record, FenceBrokerRecord)
            fenced += isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == _FENCED
    return Story(elected, last_epoch - epoch, fenced, isr_changes, leader_changes)


def _records(batch: bytes) -> Iterator[object]:
    return (unframe_record(record.value or b"") for record in read_records(batch))


def _epoch(batch: bytes) -> int:
    (epoch,) = struct.unpack_from(">i", batch, 12)
    return int(epoch)
