"""Writes the markers of transactions that have ended into all their partitions, wherever these are led.

Ask, do, tell: a shard lets out `SendMarkers`, and is told when every partition has its marker. What is not answered, or
refused for now, is tried again for as long as the shard lives in the same epoch, at the leader of the moment. A
partition that nobody leads waits for a leader: it may hold records of the transaction, and they would hang for ever
(KAFKA-20734). One that is gone for good needs no marker.

Nothing here is remembered: when the shard goes, so do its markers, and whoever loads it next sends all of them again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.coordinators.transactions.effects import SendMarkers
from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NETWORK_EXCEPTION,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.model.ids import NodeId
from penstock.server.coordinating.marker_queues import MARKED, TAKEN_OVER, Ending, MarkerQueue, Outcome
from penstock.server.loops.duty import on_duty
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.coordinators.decision import Decision, Effect, Moment
    from penstock.coordinators.transactions.requests import Partition
    from penstock.coordinators.transactions.shard import TransactionShard
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.errors import ErrorCode
    from penstock.model.ids import Epoch
    from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
    from penstock.server.peers import Address, Peers

log = logging.getLogger("penstock.transactions")

PURPOSE: Final = "markers"
PAUSE_FIRST_MS: Final = 20.0
PAUSE_MAX_MS: Final = 1_000.0
GRACE_MS: Final = 1_000
"""A broker that waits for its followers says so after as long as it was given; that answer has to arrive too."""
_VERSION: Final = 2

_TRANSIENT: Final = frozenset(
    {
        KAFKA_STORAGE_ERROR,
        NETWORK_EXCEPTION,
        NOT_ENOUGH_REPLICAS,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        NOT_LEADER_OR_FOLLOWER,
        REQUEST_TIMED_OUT,
        UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""What the leader of a partition answers while it cannot write. Anything else is tried again too, and is logged."""

Tell = Callable[[int, "Epoch", "Callable[[TransactionShard, Moment], Decision]"], bool]
WriteHere = Callable[["WriteTxnMarkersRequest", int], "WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]"]


class MarkerSender:
    """Told what to do by the kind (`carry_out`, `give_up`, `follow`); tells the shard by `Runtime.tell`."""

    def __init__(
        self,
        me: NodeId,
        peers: Peers,
        *,
        image: Callable[[], ClusterImage],
        address_of: Callable[[NodeId], Address | None],
        write_here: WriteHere,
        tell: Tell,
        timeout_ms: Callable[[], int],
    ) -> None:
        """`write_here` serves the partitions that this node leads. A broker has `timeout_ms` to answer."""
        self._me, self._peers = me, peers
        self._image, self._address_of, self._write_here = image, address_of, write_here
        self._tell, self._timeout_ms = tell, timeout_ms
        self._loop = asyncio.get_running_loop()
        self._endings: dict[int, dict[Ending, None]] = {}
        self._queues: dict[NodeId, MarkerQueue] = {}
        self._timers: dict[asyncio.TimerHandle, None] = {}
        self._untold: dict[Ending, None] = {}
        self._strange: set[ErrorCode] = set()

    # -- what is seen from outside

    @property
    def unmarked(self) -> int:
        """Markers that were decided and not written yet, as far as is known."""
        return sum(len(ending.unmarked) for ending in self._all())

    @property
    def without_destination(self) -> int:
        """Of these, the ones whose partition nobody leads, or whose leader has no address."""
        image = self._image()
        return sum(
            self._destination(image, partition) is None for ending in self._all() for partition in ending.unmarked
        )

    @property
    def untold(self) -> int:
        """Transactions whose end could not be written into their log yet, although all their markers are."""
        return len(self._untold)

    def _all(self) -> Iterable[Ending]:
        return (ending for endings in self._endings.values() for ending in endings)

    # -- effects come and go

    def carry_out(self, index: int, epoch: Epoch, effects: Sequence[Effect]) -> None:
        """Begins in the next turn of the loop: a shard that lets something out is not asked in the same breath."""
        endings = self._endings.setdefault(index, {})
        for effect in effects:
            assert isinstance(effect, SendMarkers), "transactions have no other effects"
            ending = Ending(index, epoch, effect)
            endings[ending] = None
            if ending.unmarked:
                self._route(ending, list(ending.unmarked))
            if not ending.unmarked:
                self._loop.call_soon(on_duty("the end of a transaction", partial(self._finish, ending)))

    def give_up(self, index: int) -> None:
        """The shard is gone, or led in another epoch."""
        for ending in self._endings.pop(index, ()):
            ending.over = True
            self._untold.pop(ending, None)
            for partition, queue in ending.unmarked.items():
                if queue is not None:
                    queue.remove(ending, partition)

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Leaders and brokers may have changed: whatever waits at the wrong place goes to the right one."""
        if not self._endings or not (delta.partitions or delta.deleted or delta.brokers):
            return
        for ending in list(self._all()):
            moved = [
                partition
                for partition, queue in ending.unmarked.items()
                if queue is None or self._destination(image, partition) != queue.node
            ]
            if moved:
                self._route(ending, moved)
                self._finish_if_marked(ending)

    def close(self) -> None:
        """Sends nothing any more; what is under way is answered to nobody."""
        for index in list(self._endings):
            self.give_up(index)
        for queue in self._queues.values():
            queue.close()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    # -- where markers go

    def _destination(self, image: ClusterImage, partition: Partition) -> NodeId | None:
        """The leader of now, if it can be reached."""
        topic = image.topic(partition[0])
        found = None if topic is None else topic.get(partition[1])
        if found is None or found.leader < 0:
            return None
        leader = NodeId(found.leader)
        return leader if leader == self._me or self._address_of(leader) is not None else None

    def _route(self, ending: Ending, partitions: Iterable[Partition]) -> None:
        """Puts markers into the queues of their leaders. Those of partitions that are gone have nothing to wait for."""
        image = self._image()
        for partition in partitions:
            before = ending.unmarked[partition]
            if before is not None:
                before.remove(ending, partition)
            topic = image.topic(partition[0])
            if topic is None or topic.get(partition[1]) is None:
                del ending.unmarked[partition]
                continue
            leader = self._destination(image, partition)
            if leader is None:
                ending.unmarked[partition] = None  # until the image says who leads it
            else:
                self._queue_of(leader).add(ending, partition)

    def _queue_of(self, node: NodeId) -> MarkerQueue:
        queue = self._queues.get(node)
        if queue is None:
            here = node == self._me

            async def send(request: WriteTxnMarkersRequest, number: int) -> WriteTxnMarkersResponse | None:
                if not here:
                    return await self._ask(node, request, number)
                reply = self._write_here(request, self._timeout_ms())
                return await reply if isinstance(reply, Awaitable) else reply

            queue = self._queues[node] = MarkerQueue(node, self._loop, send, self._answered, is_here=here)
        return queue

    async def _ask(self, node: NodeId, request: WriteTxnMarkersRequest, number: int) -> WriteTxnMarkersResponse | None:
        address = self._address_of(node)
        if address is None:
            return None
        purpose = f"{PURPOSE}-{number}" if number else PURPOSE
        try:
            reply: WriteTxnMarkersResponse = await self._peers.ask(
                address, request, _VERSION, purpose=purpose, timeout_ms=self._timeout_ms() + GRACE_MS
            )
        except LinkError as failure:
            log.debug("markers to node %d have no answer: %s", node, failure)
            return None
        return reply

    # -- what became of them

    def _answered(self, queue: MarkerQueue, outcomes: list[Outcome]) -> None:
        again: dict[Ending, list[Partition]] = {}
        marked: dict[Ending, list[Partition]] = {}
        for ending, partition, error in outcomes:
            if ending.over or partition not in ending.unmarked:
                continue
            if error in MARKED:
                waits_at = ending.unmarked.pop(partition)
                if waits_at is not None:
                    waits_at.remove(ending, partition)  # it was sent once more, to the next leader
                marked.setdefault(ending, []).append(partition)
            elif error in TAKEN_OVER:
                self._stop(ending, error)
            elif ending.unmarked[partition] is queue:
                self._say(error, partition)
                ending.unmarked[partition] = None
                again.setdefault(ending, []).append(partition)
        for ending, partitions in marked.items():
            if ending.over:
                continue
            ending.tries = 0
            if ending.unmarked:
                self._tell_progress(ending, tuple(partitions))
            else:
                self._finish(ending)
        if again:
            self._later(again)

    def _tell_progress(self, ending: Ending, partitions: tuple[Partition, ...]) -> None:
        """For those who look: of the rest of a long transaction it is known what it waits for."""
        self._tell(
            ending.index, ending.epoch, lambda shard, now: shard.partitions_marked(ending.effect, partitions, now)
        )

    def _say(self, error: ErrorCode, partition: Partition) -> None:
        if error not in _TRANSIENT and error not in self._strange:
            self._strange.add(error)
            log.warning("%s-%d answers a marker with %s; it is tried again", *partition, error.name)

    def _later(self, again: dict[Ending, list[Partition]]) -> None:
        """Tries once more after a pause that grows with every try of the youngest; a new image may come before."""
        for ending in again:
            ending.tries += 1
        self._after(min(ending.tries for ending in again), partial(self._again, again))

    def _again(self, again: dict[Ending, list[Partition]]) -> None:
        for ending, partitions in again.items():
            if not ending.over:
                # Whatever has a queue by now was routed by an image.
                self._route(ending, [each for each in partitions if ending.unmarked.get(each, self) is None])
                self._finish_if_marked(ending)

    def _after(self, tries: int, callback: Callable[[], None]) -> None:
        pause_ms = min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** min(tries - 1, 10))

        def ring() -> None:
            self._timers.pop(timer, None)
            callback()

        timer = self._loop.call_later(pause_ms / 1_000, on_duty("the timer of markers", ring))
        self._timers[timer] = None

    # -- telling the shard

    def _finish_if_marked(self, ending: Ending) -> None:
        if not ending.unmarked and not ending.over and ending not in self._untold:
            self._finish(ending)

    def _finish(self, ending: Ending) -> None:
        """Every partition has its marker. The shard writes so, or is told again while its log cannot be written."""
        if ending.over:
            return
        if self._tell(ending.index, ending.epoch, lambda shard, now: shard.markers_written(ending.effect, now)):
            self._forget(ending)
        elif not ending.over:
            self._untold[ending] = None
            ending.tries += 1
            self._after(ending.tries, partial(self._finish, ending))

    def _stop(self, ending: Ending, error: ErrorCode) -> None:
        """Somebody else has ended this transaction, or will: none of its markers goes any further."""
        log.info(
            "the markers of %s (producer %d, epoch %d) are given up: %s",
            ending.effect.transactional_id, ending.effect.producer_id, ending.effect.producer_epoch, error.name,
        )  # fmt: skip
        for partition, queue in ending.unmarked.items():
            if queue is not None:
                queue.remove(ending, partition)
        self._tell(ending.index, ending.epoch, lambda shard, now: shard.markers_refused(ending.effect, error, now))
        self._forget(ending)

    def _forget(self, ending: Ending) -> None:
        ending.over = True
        self._untold.pop(ending, None)
        endings = self._endings.get(ending.index)
        if endings is not None:
            endings.pop(ending, None)
            if not endings:
                del self._endings[ending.index]
