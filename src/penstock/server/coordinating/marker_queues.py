"""Markers on their way to one broker: what waits, what is under way, and how an answer is read.

| | nothing under way | a round is under way | it takes long |
|---|---|---|---|
| a marker comes | leaves in the next turn of the loop | waits | leaves, unless that round has its partition |
| the answer comes | | all that waits is the next round | and so is what waited for its partitions |

A broker answers when every partition of a request is replicated. One follower that stands still would hold everybody's
transactions that end here, so a round that takes long is set aside, and goes on over its own connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.model.errors import (
    INVALID_PRODUCER_EPOCH,
    NETWORK_EXCEPTION,
    NONE,
    TRANSACTION_COORDINATOR_FENCED,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    UNSUPPORTED_VERSION,
    ErrorCode,
    error_of,
)
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from penstock.server.loops.duty import duty, on_duty

if TYPE_CHECKING:
    import asyncio

    from penstock.coordinators.transactions.effects import SendMarkers
    from penstock.coordinators.transactions.requests import Partition
    from penstock.model.ids import Epoch, NodeId
    from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersResponse

SLOW_MS: Final = 100.0
"""A round that is not answered within this time is set aside."""
ASIDE_MAX: Final = 8
"""So many rounds may take long at one broker; beyond that everybody waits."""
PARTITIONS_AT_ONCE: Final = 2_000
"""In one request: about 100 KB, and a few hundred milliseconds of a loop at the other end."""

MARKED: Final = frozenset({NONE, UNSUPPORTED_FOR_MESSAGE_FORMAT, UNSUPPORTED_VERSION})
"""The partition needs nothing more."""
TAKEN_OVER: Final = frozenset({INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED})
"""Another coordinator, or a later transaction, is past this one: a marker of ours must not follow."""


class Ending:
    """One transaction whose markers are being written: an effect of one shard in one epoch."""

    __slots__ = ("effect", "epoch", "index", "over", "tries", "unmarked")

    def __init__(self, index: int, epoch: Epoch, effect: SendMarkers) -> None:
        self.index, self.epoch, self.effect = index, epoch, effect
        self.unmarked: dict[Partition, MarkerQueue | None] = dict.fromkeys(effect.partitions)
        """Partitions that may lack their marker, and where each of them waits."""
        self.tries = 0
        self.over = False


class Outcome(NamedTuple):
    """What became of one marker in one partition."""

    ending: Ending
    partition: Partition
    error: ErrorCode


Markers = dict[Ending, list["Partition"]]
Send = Callable[[WriteTxnMarkersRequest, int], Awaitable["WriteTxnMarkersResponse | None"]]
"""Sends a request over the connection of that number: the answer, or None when there is none."""


class Round:
    """One request. `number` is that of its connection."""

    __slots__ = ("is_slow", "markers", "number", "task", "timer")

    def __init__(self, markers: Markers, number: int) -> None:
        self.markers, self.number = markers, number
        self.is_slow = False
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None

    def partitions(self) -> Iterator[Partition]:
        for partitions in self.markers.values():
            yield from partitions


class MarkerQueue:
    """The way to one broker; to this node itself there is no need to wait for an answer before the next round."""

    __slots__ = ("_answered", "_loop", "_rounds", "_scheduled", "_send", "_waiting", "is_here", "node")

    def __init__(
        self,
        node: NodeId,
        loop: asyncio.AbstractEventLoop,
        send: Send,
        answered: Callable[[MarkerQueue, list[Outcome]], None],
        *,
        is_here: bool,
    ) -> None:
        self.node, self.is_here = node, is_here
        self._loop, self._send, self._answered = loop, send, answered
        self._waiting: dict[tuple[Ending, Partition], None] = {}
        self._rounds: dict[int, Round] = {}
        self._scheduled = False

    def __len__(self) -> int:
        """How many markers wait, or are under way."""
        return len(self._waiting) + sum(len(list(each.partitions())) for each in self._rounds.values())

    def add(self, ending: Ending, partition: Partition) -> None:
        ending.unmarked[partition] = self
        self._waiting[ending, partition] = None
        self._schedule()

    def remove(self, ending: Ending, partition: Partition) -> None:
        """It has nothing to wait for here any more. What is under way stays so; its answer may still be good news."""
        self._waiting.pop((ending, partition), None)

    def close(self) -> None:
        self._waiting.clear()
        for each in self._rounds.values():
            if each.timer is not None:
                each.timer.cancel()
            if each.task is not None:
                each.task.cancel()

    def _schedule(self) -> None:
        if not self._scheduled and self._waiting:
            self._scheduled = True
            self._loop.call_soon(on_duty("the next round of markers", self._next_round))

    def _next_round(self) -> None:
        self._scheduled = False
        if not self._waiting or not self._may_send():
            return
        markers = self._taken()
        if not markers:
            return
        number = next(number for number in range(len(self._rounds) + 1) if number not in self._rounds)
        self._rounds[number] = under_way = Round(markers, number)
        if not self.is_here:
            under_way.timer = self._loop.call_later(SLOW_MS / 1_000, self._set_aside, under_way)
        under_way.task = duty(self._carry(under_way), name=f"markers to node {self.node}")
        if self.is_here:
            self._schedule()  # what did not fit into this round

    def _may_send(self) -> bool:
        if self.is_here:
            return True
        return len(self._rounds) < ASIDE_MAX and all(each.is_slow for each in self._rounds.values())

    def _taken(self) -> Markers:
        """The next request: everything that waits and may go now.

        Answers are told apart by the producer alone, so a request has at most one transaction of each.
        """
        held = {partition for each in self._rounds.values() if each.is_slow for partition in each.partitions()}
        markers: Markers = {}
        by_producer: dict[int, Ending] = {}
        count = 0
        for ending, partition in list(self._waiting):
            if ending.over:
                del self._waiting[ending, partition]
                continue
            if partition in held or by_producer.setdefault(ending.effect.producer_id, ending) is not ending:
                continue
            del self._waiting[ending, partition]
            markers.setdefault(ending, []).append(partition)
            count += 1
            if count == PARTITIONS_AT_ONCE:
                break
        return markers

    def _set_aside(self, under_way: Round) -> None:
        under_way.is_slow = True
        self._schedule()

    async def _carry(self, under_way: Round) -> None:
        reply = await self._send(request_of(under_way.markers), under_way.number)
        if under_way.timer is not None:
            under_way.timer.cancel()
        del self._rounds[under_way.number]
        self._schedule()
        self._answered(self, list(outcomes_of(under_way.markers, reply)))


def request_of(markers: Markers) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=ending.effect.producer_id,
                producer_epoch=ending.effect.producer_epoch,
                transaction_result=ending.effect.commits,
                topics=_topics(partitions),
                coordinator_epoch=ending.effect.coordinator_epoch,
                transaction_version=ending.effect.transaction_version,
            )
            for ending, partitions in markers.items()
        ]
    )


def _topics(partitions: Iterable[Partition]) -> list[WriteTxnMarkersRequest.WritableTxnMarkerTopic]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return [
        WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
        for topic, indexes in by_topic.items()
    ]


def outcomes_of(markers: Markers, reply: WriteTxnMarkersResponse | None) -> Iterator[Outcome]:
    """What the answer says of each marker. What it does not speak of was not written, as far as we know."""
    told: dict[tuple[int, Partition], ErrorCode] = {}
    for marker in () if reply is None else reply.markers:
        for topic in marker.topics:
            for partition in topic.partitions:
                told[marker.producer_id, (topic.name, partition.partition_index)] = error_of(partition.error_code)
    for ending, partitions in markers.items():
        for place in partitions:
            error = told.get((ending.effect.producer_id, place), NETWORK_EXCEPTION)
            yield Outcome(ending, place, error)
