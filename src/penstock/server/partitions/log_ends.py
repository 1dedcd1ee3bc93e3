"""Where the logs of partitions end that other brokers lead: asked of the leaders when somebody wants to know.

A follower here would not do: one that is late knows an old end, and a lag that is counted from it is too small. What a
leader does not tell in time is not known, and nothing is said of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.ids import NO_NODE, NodeId, Offset
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.protocol.messages.list_offsets import ListOffsetsResponse
    from penstock.server.peers import Address, Peers

PURPOSE: Final = "log-ends"
WAIT_MS: Final = 1_000
FRESH_MS: Final = 1_000.0
AT_ONCE: Final = 500
"""Partitions in one request: the leader answers it in one go."""
_VERSION: Final = 9
_CONSUMER, _LATEST = -1, -1

Name = tuple[str, int]


class Led(Protocol):
    """What is known here of partitions and their leaders."""

    def log_end(self, topic: str, partition: int) -> Offset | None:
        """The high watermark of a partition that this node leads; None when it does not."""

    def leader_of(self, topic: str, topic_id: bytes, partition: int) -> tuple[int, int]: ...
    def address_of(self, node: NodeId) -> Address | None: ...


class LogEnds:
    """Nothing is asked, kept or dialled before the first wish."""

    __slots__ = ("_asked_at", "_clock", "_known", "_lock", "_partitions", "_peers")

    def __init__(self, partitions: Led, peers: Peers, clock: Clock) -> None:
        self._partitions, self._peers, self._clock = partitions, peers, clock
        self._lock = asyncio.Lock()
        self._known: dict[Name, Offset] = {}
        self._asked_at: float | None = None

    def end_of(self, topic: str, partition: int) -> Offset | None:
        """How far consumers can read a partition; None when nobody has said so just now."""
        end = self._partitions.log_end(topic, partition)
        return self._known.get((topic, partition)) if end is None else end

    async def ask(self, wanted: Iterable[Name]) -> None:
        """Asks the leaders of what is not led here; returns when all have answered, or after a second.

        Those who come together share one round of questions.
        """
        async with self._lock:
            if self._asked_at is not None and self._clock.monotonic_ms() - self._asked_at < FRESH_MS:
                return
            by_leader: dict[NodeId, list[Name]] = {}
            for topic, partition in wanted:
                leader, _ = self._partitions.leader_of(topic, b"", partition)
                if leader != NO_NODE and self._partitions.log_end(topic, partition) is None:
                    by_leader.setdefault(NodeId(leader), []).append((topic, partition))
            self._known = {}
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_MS / 1_000):
                    await asyncio.gather(*(self._ask(leader, names) for leader, names in by_leader.items()))
            self._asked_at = self._clock.monotonic_ms()

    async def _ask(self, leader: NodeId, names: list[Name]) -> None:
        address = self._partitions.address_of(leader)
        if address is None:
            return
        for start in range(0, len(names), AT_ONCE):
            request = _request(names[start : start + AT_ONCE])
            try:
                reply = await self._peers.ask(address, request, _VERSION, purpose=PURPOSE, timeout_ms=WAIT_MS)
            except LinkError:
                return
            self._take(reply)

    def _take(self, reply: ListOffsetsResponse) -> None:
        for topic in reply.topics:
            for told in topic.partitions:
                if not told.error_code and told.offset >= 0:
                    self._known[topic.name, told.partition_index] = Offset(told.offset)


def _request(names: list[Name]) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for name, partition in names:
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = ListOffsetsRequest.ListOffsetsTopic(name=name)
        topic.partitions.append(ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=_LATEST))
    return ListOffsetsRequest(replica_id=_CONSUMER, topics=list(topics.values()))
