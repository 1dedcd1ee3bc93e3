"""The short way of a produce: a request with nothing unusual in it, for partitions without wishes of their own.

Nothing is written before every batch is known to be plain for its topic, so until then the long way (`produce_driver`)
can still be taken as if nothing had been. After that only a log can refuse; then the long way is taken from there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.model.errors import NONE, ErrorCode, Refused, StorageFailed
from penstock.protocol.codec import decode
from penstock.protocol.messages.produce import ProduceRequest
from penstock.server.cluster_view import INTERNAL_TOPICS
from penstock.server.context import Later
from penstock.server.drivers.acks import settled

if TYPE_CHECKING:
    from penstock.kernels import BatchHeader, PlainBatch, PlainProduce
    from penstock.model.config import TopicSettings
    from penstock.model.ids import Millis, Offset
    from penstock.model.ports import Clock
    from penstock.server.drivers.hosted import Hosted
    from penstock.server.drivers.partition_driver import PartitionDriver
    from penstock.server.drivers.produce_driver import ProduceDriver
    from penstock.storage.tickets import Ticket

BY_ID_SINCE = 13
LEADERS_SINCE = 10
_NO_BOUND_MS = (1 << 63) - 1

Write = tuple["Hosted", "BatchHeader", memoryview]


class PlainProduces:
    """Writes plain requests, and leaves to the produce driver what turns out not to be one."""

    __slots__ = ("_clock", "_long_way", "_partitions")

    def __init__(self, long_way: ProduceDriver, partitions: PartitionDriver, clock: Clock) -> None:
        self._long_way, self._partitions, self._clock = long_way, partitions, clock

    def produce(
        self,
        request: PlainProduce,
        frame: bytearray,
        position: int,
        version: int,
        allowed: Callable[[str], bool],
        *,
        correlation_id: int,
        listener: str,
    ) -> bytes | Later | Any | None:
        """The whole frame of the reply, or what the long way returns; None when that must be taken from the start."""
        now, acks, long_way = self._clock.now_ms(), request.acks, self._long_way
        writes = self._admitted(request, memoryview(frame), version, allowed, now)
        if writes is None:
            return None
        tickets: list[Ticket] = []
        numbers: list[int] = []
        awaited: list[tuple[Hosted, Offset]] = []
        try:
            for hosted, header, batch in writes:
                ticket = hosted.append(batch, header, acks, now)
                tickets.append(ticket)
                traffic = hosted.traffic
                traffic.batches_in += 1
                traffic.bytes_in += header.size
                traffic.records_in += header.record_count
                numbers.append(ticket.base)
                numbers.append((hosted.log or hosted.require_log()).log_start)
                if hosted.state.high_watermark < ticket.end if acks < 0 else not settled(hosted, ticket.end, acks):
                    awaited.append((hosted, ticket.end))
        except (Refused, StorageFailed) as failure:
            whole, _ = decode(ProduceRequest, version, frame, position)
            return long_way.go_on(whole, writes, tickets, failure, now, listener if version >= LEADERS_SINCE else "")
        reply = request.reply(correlation_id, numbers)
        if not awaited or not acks:
            return reply
        in_case = partial(self._answered, reply, frame, position, version, writes, tickets, awaited, listener)
        return long_way.acks.wait(awaited, acks, request.timeout_ms, in_case, reply)

    def _answered(
        self,
        reply: bytes,
        frame: bytearray,
        position: int,
        version: int,
        writes: list[Write],
        tickets: list[Ticket],
        awaited: list[tuple[Hosted, Offset]],
        listener: str,
        errors: list[ErrorCode],
    ) -> Any:
        """What to say when it is known what became of each batch that was waited for."""
        if all(error is NONE for error in errors):
            return reply
        whole, _ = decode(ProduceRequest, version, frame, position)
        refusals = {waiting: error for waiting, error in zip(awaited, errors, strict=True) if error is not NONE}
        return self._long_way.take_back(whole, writes, tickets, refusals, listener if version >= LEADERS_SINCE else "")

    def _admitted(
        self, request: PlainProduce, frame: memoryview, version: int, allowed: Callable[[str], bool], now: Millis
    ) -> list[Write] | None:
        """What to write where; None when a partition is not simply here or its topic would look closer at a batch."""
        partitions, writes = self._partitions, []
        try:
            for topic, batches in request.topics:
                topic_id = topic if version >= BY_ID_SINCE else partitions.id_of(topic)
                if topic_id is None:
                    return None
                for batch in batches:
                    hosted = partitions.by_id(topic_id, batch[0])
                    header, position = batch[2], batch[1]
                    if not takes(hosted.settings, batch, now):
                        return None
                    writes.append((hosted, header, frame[position : position + header.size]))
                name = hosted.name.topic
                if name in INTERNAL_TOPICS or not allowed(name):
                    return None
        except Refused:
            return None
        return writes


def takes(settings: TopicSettings, batch: PlainBatch, now: Millis) -> bool:
    """Whether a topic takes a plain batch as it is: what `replication.admission` finds out, the common case of it."""
    _, _, header, earliest, keyless = batch
    if (
        header.size > settings.max_message_bytes
        or header.max_timestamp - now > settings.message_timestamp_after_max_ms
        or settings.compression_type != "producer"
        or settings.message_timestamp_type != "CreateTime"
    ):
        return False
    if keyless < 0:
        return not settings.compacts and settings.message_timestamp_before_max_ms >= _NO_BOUND_MS
    if keyless and settings.compacts:
        return False
    return now - earliest <= settings.message_timestamp_before_max_ms
