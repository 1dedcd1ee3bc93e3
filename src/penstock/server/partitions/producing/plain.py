"""The short way of a produce: a request with nothing unusual in it, for partitions without wishes of their own.

Nothing is written before every batch is known to be plain for its topic, so until then the long way (`driver.py`)
can still be taken as if nothing had been. After that only a log can refuse; then the long way is taken from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.model.errors import NONE, ErrorCode, Refused, StorageFailed
from penstock.model.ids import INTERNAL_TOPICS
from penstock.protocol.codec import decode
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.replication.acks import holds
from penstock.replication.admission import takes_as_it_is
from penstock.server.doors import Later

if TYPE_CHECKING:
    from penstock.kernels import BatchHeader, PlainProduce
    from penstock.model.ids import Millis, Offset
    from penstock.model.ports import Clock
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.partitions.producing.acks import AcksLine
    from penstock.storage.tickets import Ticket

BY_ID_SINCE = 13
LEADERS_SINCE = 10

Write = tuple["Hosted", "BatchHeader", memoryview]


class LongWay(Protocol):
    """The way of all other produces, which ends what turns out not to be plain."""

    acks: AcksLine

    def go_on(
        self,
        request: ProduceRequest,
        writes: Sequence[Write],
        tickets: Sequence[Ticket],
        failure: Refused | StorageFailed,
        now: Millis,
        listener: str,
    ) -> ProduceResponse | Later:
        """Goes on from where a log refused a batch; `tickets` are of those that were written before it."""

    def take_back(
        self,
        request: ProduceRequest,
        writes: Sequence[Write],
        tickets: Sequence[Ticket],
        refusals: Mapping[tuple[Hosted, Offset], ErrorCode],
        listener: str,
    ) -> ProduceResponse:
        """The reply when some batches were written but did not become what acks promised."""


class Written:
    """A plain produce whose batches are in their logs and have still to become what acks promise."""

    __slots__ = (
        "_awaited",
        "_frame",
        "_listener",
        "_long_way",
        "_position",
        "_reply",
        "_tickets",
        "_version",
        "_writes",
    )

    def __init__(
        self,
        long_way: LongWay,
        frame: bytearray,
        position: int,
        version: int,
        listener: str,
        reply: bytes,
        writes: list[Write],
        tickets: list[Ticket],
        awaited: list[tuple[Hosted, Offset]],
    ) -> None:
        self._long_way, self._frame, self._position, self._version = long_way, frame, position, version
        self._listener, self._reply, self._writes = listener, reply, writes
        self._tickets, self._awaited = tickets, awaited

    def answered(self, errors: list[ErrorCode]) -> bytes | ProduceResponse:
        """The reply, now that it is known what became of each batch that was waited for."""
        if all(error is NONE for error in errors):
            return self._reply
        whole, _ = decode(ProduceRequest, self._version, self._frame, self._position)
        refusals = {waited: error for waited, error in zip(self._awaited, errors, strict=True) if error is not NONE}
        listener = self._listener if self._version >= LEADERS_SINCE else ""
        return self._long_way.take_back(whole, self._writes, self._tickets, refusals, listener)


class PlainProduces:
    """Writes plain requests, and leaves to the produce driver what turns out not to be one."""

    __slots__ = ("_clock", "_long_way", "_partitions")

    def __init__(self, long_way: LongWay, partitions: PartitionDriver, clock: Clock) -> None:
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
    ) -> bytes | ProduceResponse | Later | None:
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
                if not holds(hosted, ticket.end, acks):
                    awaited.append((hosted, ticket.end))
        except (Refused, StorageFailed) as failure:
            whole, _ = decode(ProduceRequest, version, frame, position)
            return long_way.go_on(whole, writes, tickets, failure, now, listener if version >= LEADERS_SINCE else "")
        reply = request.reply(correlation_id, numbers)
        if not awaited:
            return reply
        written = Written(long_way, frame, position, version, listener, reply, writes, tickets, awaited)
        return long_way.acks.wait(awaited, acks, request.timeout_ms, written.answered, reply)

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
                    if not takes_as_it_is(hosted.settings, batch, now):
                        return None
                    writes.append((hosted, header, frame[position : position + header.size]))
                name = hosted.name.topic
                if name in INTERNAL_TOPICS or not allowed(name):
                    return None
        except Refused:
            return None
        return writes
