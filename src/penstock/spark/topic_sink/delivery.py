"""How rows reach topics, and when they count.

At least once: rows count as written when brokers have acknowledged them. `transactions/` is the other way, in which
they count when their batch does, once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.client.errors import ClientError
from penstock.spark.dialogue import for_process, producer_for
from penstock.spark.errors import SparkRoomError
from penstock.spark.topic_sink.options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.producer import Producer

_log = logging.getLogger("penstock.spark.topic_sink")

STRIDE_BYTES: Final = 8 << 20
"""Rows are sent and awaited by so much at a time. Nothing may be under way when Spark is asked for more: the loop does
not run then, and a record that waits for it would be taken for late."""


class NotDelivered(SparkRoomError):
    """Rows could not be written to a topic."""


class Landed(NamedTuple):
    """What a task wrote to one partition; offsets of other writers may lie between. -1: nobody was asked (acks=0)."""

    topic: str
    partition: int
    rows: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Written:
    """What one task has written: the account of it that its commit message carries."""

    query_id: str
    batch_id: int
    attempt: int
    rows: int
    landed: tuple[Landed, ...]


@dataclass(frozen=True, slots=True)
class AtLeastOnce:
    """Rows count when they are acknowledged; a task or batch that is tried again writes them again. Pickles."""

    options: SinkOptions

    def deliver(self, records: Iterable[tuple[str, pa.RecordBatch]]) -> tuple[Landed, ...]:
        producer = producer_for(self.options.producer_settings)
        found: dict[tuple[str, int], Landed] = {}
        for stride in strides(records, STRIDE_BYTES):
            try:
                for landed in for_process().run(delivered(producer, stride)):
                    key = landed.topic, landed.partition
                    found[key] = joined(found[key], landed) if key in found else landed
            except BaseException:
                # What is left in it must not go out with the rows of another task.
                for_process().drop(producer)
                raise
        return tuple(found[key] for key in sorted(found))

    def commit(self, written: Sequence[Written], batch_id: int) -> None:
        rows = sum(task.rows for task in written)
        _log.info("batch %d: %d rows in %d tasks were acknowledged", batch_id, rows, len(written))

    def abort(self, written: Sequence[Written], batch_id: int) -> None:
        rows = sum(task.rows for task in written)
        if rows:
            _log.warning(
                "batch %d failed when %d of its rows had been written to topics; they stay there and will be written "
                "again when it is tried again",
                batch_id,
                rows,
            )


def strides(
    records: Iterable[tuple[str, pa.RecordBatch]], least_bytes: int
) -> Iterator[list[tuple[str, pa.RecordBatch]]]:
    """Batches gathered until they have `least_bytes`; the last may be smaller."""
    held: list[tuple[str, pa.RecordBatch]] = []
    size_bytes = 0
    for topic, batch in records:
        if not batch.num_rows:
            continue
        held.append((topic, batch))
        size_bytes += batch.nbytes
        if size_bytes >= least_bytes:
            yield held
            held, size_bytes = [], 0
    if held:
        yield held


async def delivered(producer: Producer, stride: Sequence[tuple[str, pa.RecordBatch]]) -> list[Landed]:
    under_way = []
    for topic, rows in stride:
        try:
            under_way.append((topic, producer.send_arrow(topic, rows)))
        except ClientError as wrong:
            raise _notdelivered(topic, wrong, 0) from wrong
        await producer.wait_for_room()
    await producer.flush()
    found = []
    for topic, delivery in under_way:
        try:
            report = await delivery
        except ClientError as wrong:
            raise _notdelivered(topic, wrong, delivery.delivered) from wrong
        for span in report.spans:
            last = span.base_offset + span.count - 1 if span.base_offset >= 0 else -1
            found.append(Landed(topic, span.partition, span.count, span.base_offset, last))
    return found


def _notdelivered(topic: str, why: ClientError, delivered: int) -> NotDelivered:
    some = f"; {delivered} rows of the same part were written" if delivered else ""
    return NotDelivered(f"rows could not be written to topic {topic!r}: {why}{some}")


def joined(one: Landed, other: Landed) -> Landed:
    first = min(one.first, other.first)
    return Landed(one.topic, one.partition, one.rows + other.rows, first, max(one.last, other.last))
