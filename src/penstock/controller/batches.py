"""A decision as the batches that the metadata log gets: one when it fits, otherwise several inside a transaction.

Nobody ever sees half a decision: a batch is applied as a whole, and nothing of a transaction shows before its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from penstock.controller.decision import Decision
from penstock.metadata.features import METADATA_3_6_TRANSACTIONS
from penstock.metadata.records import Record, VersionedRecord, frame_record
from penstock.model.errors import RECORD_LIST_TOO_LARGE, Refused
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord, PartitionRecord
from penstock.protocol.disk.metadata_transactions import BeginTransactionRecord, EndTransactionRecord

RECORDS_MAX: Final = 1_000
BATCH_BYTES_MAX: Final = 8 << 20
# A batch header, and at most so much around each framed record.
_HEADER_BYTES: Final = 61
_RECORD_BYTES: Final = 24
# Six lists of brokers and one of directories make up the size of a partition's records.
_SMALL_REPLICAS: Final = 16
_SMALL_BYTES: Final = 1_024


def plan_batches(decision: Decision, metadata_version: int) -> list[list[VersionedRecord]]:
    """The records of a decision, cut into batches in the order they are to be appended; empty for no records.

    All of a decision's batches must be appended before any other record. Refused with RECORD_LIST_TOO_LARGE for a
    record that is larger than any batch, as in Kafka: while voters copied one of 90 MB nobody heard from the leader.
    """
    whole = list(_cut(decision.records))
    if len(whole) <= 1 or metadata_version < METADATA_3_6_TRANSACTIONS:
        # Before transactions existed a batch was the only atom there is, whatever its size.
        return [list(decision.records)] if decision.records else []
    begin: VersionedRecord = (BeginTransactionRecord(name=decision.name or None), 0)
    end: VersionedRecord = (EndTransactionRecord(), 0)
    return list(_cut([begin, *decision.records, end]))


def _cut(records: Sequence[VersionedRecord]) -> Iterator[list[VersionedRecord]]:
    batch: list[VersionedRecord] = []
    batch_bytes = _HEADER_BYTES
    for record, version in records:
        record_bytes = _bytes_at_most(record, version) + _RECORD_BYTES
        if record_bytes > BATCH_BYTES_MAX:
            raise Refused(
                RECORD_LIST_TOO_LARGE, f"a record of the metadata would have more than {BATCH_BYTES_MAX} bytes"
            )
        if batch and (len(batch) == RECORDS_MAX or batch_bytes + record_bytes > BATCH_BYTES_MAX):
            yield batch
            batch, batch_bytes = [], _HEADER_BYTES
        batch.append((record, version))
        batch_bytes += record_bytes
    if batch:
        yield batch


def _bytes_at_most(record: Record, version: int) -> int:
    """How large a framed record is at most. Those that come by the thousand are small, which saves encoding them."""
    if isinstance(record, (PartitionRecord, PartitionChangeRecord)):
        replicas = max(len(record.replicas or ()), len(record.isr or ()), len(record.directories or ()))
        if replicas <= _SMALL_REPLICAS:
            return _SMALL_BYTES
    return len(frame_record(record, version))
