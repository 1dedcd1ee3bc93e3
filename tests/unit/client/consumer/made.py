"""Hand-made batches and a partition to put them into."""

from __future__ import annotations

from penstock.client.consumer.batches import Batch, open_fetched
from penstock.client.consumer.partition import AssignedPartition
from penstock.kernels import Record
from penstock.model.ids import TopicPartition
from penstock.protocol.batch import CONTROL, TRANSACTIONAL, assemble, build_batch
from penstock.protocol.control import Marker, marker_batch
from penstock.protocol.messages.fetch import FetchResponse

TP = TopicPartition("t", 0)


def batch(
    base: int, count: int = 1, *, epoch: int = 0, codec: int = 0, producer: int = -1, value: bytes = b"v"
) -> bytes:
    """`count` records from offset `base` on; with a producer it is part of a transaction."""
    records = [Record(base + i, 1_000 + base + i, b"k%d" % (base + i), value) for i in range(count)]
    return build_batch(
        records,
        base_offset=base,
        leader_epoch=epoch,
        codec=codec,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        transactional=producer >= 0,
    )


def marker(base: int, producer: int, *, commits: bool) -> bytes:
    return marker_batch(
        Marker(commits, 0), base_offset=base, leader_epoch=0, timestamp=1_000, producer_id=producer, producer_epoch=0
    )


def emptied_marker(base: int, producer: int) -> bytes:
    """What compaction leaves of a control batch whose record it took: the epoch of its producer."""
    whole = assemble(
        b"",
        base_offset=base,
        leader_epoch=0,
        attributes=TRANSACTIONAL | CONTROL,
        last_offset_delta=0,
        base_timestamp=1_000,
        max_timestamp=1_000,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=-1,
        record_count=0,
    )
    return bytes(whole)


def spoilt(whole: bytes) -> bytes:
    """The same batch with a bit of its last byte turned."""
    return whole[:-1] + bytes([whole[-1] ^ 1])


def two_transactions(data: FetchResponse.PartitionData) -> None:
    """Makes an answer say: two records that were aborted, one that was committed, their markers, and a plain one."""
    data.records = b"".join(
        [
            batch(0, 2, producer=7, value=b"aborted"),
            batch(2, 1, producer=8, value=b"committed"),
            marker(3, 7, commits=False),
            marker(4, 8, commits=True),
            batch(5, 1, value=b"plain"),
        ]
    )
    data.aborted_transactions = [FetchResponse.AbortedTransaction(producer_id=7, first_offset=0)]


def opened(*batches: bytes, at: int = 0) -> list[Batch]:
    return open_fetched(b"".join(batches), at)


def partition_at(offset: int, *batches: bytes) -> AssignedPartition:
    """A partition that is read from `offset` on and has these batches buffered."""
    made = AssignedPartition(TP)
    made.place(offset)
    made.put(opened(*batches, at=offset))
    return made
