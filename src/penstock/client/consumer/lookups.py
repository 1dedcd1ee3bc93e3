"""Asking leaders for offsets: by time, of the ends, and where a leader epoch ended.

One round asks every leader once, all of them at a time, and tells per partition what came back; whoever wants more
patience calls again. Nothing here waits for a partition that has no leader: it is told so and metadata is marked stale.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer.offsets import OffsetAndTimestamp
from penstock.client.errors import ClientError, NotReachable, UnknownTopic, link_failure, refusal
from penstock.client.retry import Backoff
from penstock.model.errors import UNKNOWN_TOPIC_OR_PARTITION, PenstockError
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from penstock.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from penstock.transport.dial import LinkError

_CONSUMER_REPLICA = -1


class EpochEnd(NamedTuple):
    """Where `epoch` ended in the leader's log; both are -1 when it knows nothing that old."""

    epoch: int
    end_offset: int


Found: TypeAlias = "OffsetAndTimestamp | EpochEnd | ClientError"
"""What is known of one partition after a round. Without a record at that time the offset is -1."""


class OffsetLookup:
    """Questions about offsets to the leaders of partitions."""

    def __init__(self, view: ClusterView, *, isolation: int, backoff: Backoff) -> None:
        self._view, self._isolation, self._backoff = view, isolation, backoff
        self._doubted: set[str] = set()  # topics of which metadata was found wrong; the next round looks again

    async def by_time(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
        """One round of ListOffsets; values are OffsetAndTimestamp or ClientError."""

        def request(partitions: list[TopicPartition]) -> ListOffsetsRequest:
            made = ListOffsetsRequest
            return made(
                replica_id=_CONSUMER_REPLICA,
                isolation_level=self._isolation,
                topics=[
                    made.ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            made.ListOffsetsPartition(
                                partition_index=tp.partition,
                                current_leader_epoch=self.leader_epoch(tp),
                                timestamp=wanted[tp],
                            )
                            for tp in group
                        ],
                    )
                    for topic, group in _by_topic(partitions).items()
                ],
            )

        def read(reply: ListOffsetsResponse) -> dict[TopicPartition, Found]:
            return {
                TopicPartition(topic.name, found.partition_index): self._refused(
                    topic.name, found.partition_index, code
                )
                if (code := found.error_code)
                else OffsetAndTimestamp(found.offset, found.timestamp, found.leader_epoch)
                for topic in reply.topics
                for found in topic.partitions
            }

        return await self._round(wanted, request, read)

    async def epoch_ends(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
        """One round of OffsetForLeaderEpoch; values are EpochEnd or ClientError."""

        def request(partitions: list[TopicPartition]) -> OffsetForLeaderEpochRequest:
            made = OffsetForLeaderEpochRequest
            return made(
                replica_id=_CONSUMER_REPLICA,
                topics=[
                    made.OffsetForLeaderTopic(
                        topic=topic,
                        partitions=[
                            made.OffsetForLeaderPartition(
                                partition=tp.partition,
                                current_leader_epoch=self.leader_epoch(tp),
                                leader_epoch=wanted[tp],
                            )
                            for tp in group
                        ],
                    )
                    for topic, group in _by_topic(partitions).items()
                ],
            )

        def read(reply: OffsetForLeaderEpochResponse) -> dict[TopicPartition, Found]:
            return {
                TopicPartition(topic.topic, found.partition): self._refused(topic.topic, found.partition, code)
                if (code := found.error_code)
                else EpochEnd(found.leader_epoch, found.end_offset)
                for topic in reply.topics
                for found in topic.partitions
            }

        return await self._round(wanted, request, read)

    async def find(
        self, wanted: Mapping[TopicPartition, int], timeout_ms: float
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The offsets of all times, in as many rounds as it takes; the last error when the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        failures = 0
        while missing := {tp: time for tp, time in wanted.items() if tp not in found}:
            trouble: ClientError | None = None
            for tp, answer in (await self.by_time(missing)).items():
                if isinstance(answer, ClientError):
                    if not answer.retriable:
                        raise answer
                    trouble = answer
                else:
                    found[tp] = answer
            if trouble is None:
                continue
            failures += 1
            delay = self._backoff.delay_ms(failures) / 1000
            if loop.time() + delay > deadline:
                raise trouble
            await asyncio.sleep(delay)
        return found

    def leader_epoch(self, tp: TopicPartition) -> int:
        """As metadata has it, -1 when it does not say."""
        topic = self._view.cached(tp.topic)
        if topic is None or tp.partition >= len(topic.partitions):
            return -1
        return topic.partitions[tp.partition].leader_epoch

    async def _round(
        self,
        wanted: Iterable[TopicPartition],
        request: Callable[[list[TopicPartition]], object],
        read: Callable[[Any], dict[TopicPartition, Found]],
    ) -> dict[TopicPartition, Found]:
        wanted = list(wanted)
        doubted = {tp.topic for tp in wanted if tp.topic in self._doubted or self._view.leader_of(*tp) is None}
        if doubted:
            await self._refresh(doubted)
        found: dict[TopicPartition, Found] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for tp in wanted:
            leader = self._view.leader_of(*tp)
            if leader is None:
                self._doubt(tp.topic)
                found[tp] = UnknownTopic(
                    "it has no leader, or does not exist", where=str(tp), error=UNKNOWN_TOPIC_OR_PARTITION
                )
            else:
                by_leader.setdefault(leader, []).append(tp)
        asked = [self._ask(leader, partitions, request, read) for leader, partitions in by_leader.items()]
        for answers in await asyncio.gather(*asked):
            found.update(answers)
        return found

    async def _ask(
        self,
        leader: int,
        partitions: list[TopicPartition],
        request: Callable[[list[TopicPartition]], object],
        read: Callable[[Any], dict[TopicPartition, Found]],
    ) -> dict[TopicPartition, Found]:
        failure: ClientError
        try:
            return read(await self._view.ask(leader, request(partitions)))
        except LinkError as broken:
            failure = link_failure(broken)
        except ClientError as refused:
            failure = refused
        except PenstockError as unknown:
            failure = NotReachable(str(unknown), retriable=True)
        for topic in _by_topic(partitions):
            self._doubt(topic)
        return dict.fromkeys(partitions, failure)

    def _refused(self, topic: str, partition: int, code: int) -> ClientError:
        failure = refusal(code, None, f"{topic}-{partition}")
        if failure.retriable:
            self._doubt(topic)
        return failure

    def _doubt(self, topic: str) -> None:
        self._doubted.add(topic)
        self._view.mark_stale(topic)

    async def _refresh(self, topics: set[str]) -> None:
        """Metadata anew; that it cannot be had is found out by whoever needs it."""
        with suppress(ClientError):
            await self._view.topics(sorted(topics))
            self._doubted -= topics


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        found.setdefault(tp.topic, []).append(tp)
    return found
