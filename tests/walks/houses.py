"""Brokers without sockets: logs, roles, produces, fetches and in-sync sets on files in memory, and a toy controller.

Followers are toys as well: they fetch through the real fetch driver and remember what they were told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from penstock.kernels import scan_batches
from penstock.metadata.difference import delta_between
from penstock.metadata.image import ClusterImage
from penstock.model.config import BrokerSettings
from penstock.model.errors import ErrorCode
from penstock.model.ids import Epoch, NodeId, Offset, Uuid
from penstock.protocol.disk.metadata_brokers import RegisterBrokerRecord
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from penstock.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.protocol.wire import Spans
from penstock.replication.fetch_session import FetchSessions
from penstock.server.doors import Later
from penstock.server.partitions.fetching.driver import FetchDriver
from penstock.server.partitions.hosted import Hosted
from penstock.server.partitions.isr_driver import IsrDriver
from penstock.server.partitions.neighbours import Neighbours
from penstock.server.partitions.partition_driver import PartitionDriver
from penstock.server.partitions.producing.driver import ProduceDriver
from penstock.server.partitions.upkeep.flushing import FlushDriver
from penstock.storage.store import LogStore
from penstock.testing.memory_files import MemoryFiles
from tests import patience
from tests.patience import within
from tests.unit.server.served import PROPERTIES
from tests.walks.control_plane import LoopOffload, ManualClock
from tests.walks.data_plane import batch_of

TOPIC, TOPIC_ID = "orders", Uuid(b"o" * 16)
LISTENER = "PLAINTEXT"
PRODUCE_VERSION, FETCH_VERSION = 13, 17
LONG_MS = 9_000
CONFIG_TOPIC, CONFIG_BROKER = 2, 4


class Following:
    """Remembers whom the partitions of a house follow."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def follow(self, hosted: Hosted) -> None:
        self.calls.append((f"follow {hosted.state.leader}@{hosted.state.epoch}", str(hosted.name)))

    def leave(self, hosted: Hosted) -> None:
        self.calls.append(("leave", str(hosted.name)))

    def start_moved(self, hosted: Hosted) -> None:
        """Who leads hears of it with the next fetch, which tests make by hand."""


class House:
    """One broker."""

    def __init__(self, me: int, street: Street, *, by_rack: bool = False, lag_ms: int = 30_000) -> None:
        self.me, self.street, self.clock = NodeId(me), street, street.clock
        self.settings = BrokerSettings.load(PROPERTIES)
        self.image = ClusterImage()
        self._uuids = 0
        files = MemoryFiles()
        files.makedirs("/data")
        self.store = LogStore(
            files, ["/data"], settings_for=lambda name: self.topic_settings(name.topic), new_uuid=self._new_uuid
        )
        self.store.open(cluster_id="cluster", node_id=self.me, now=self.clock.now_ms())
        self.flushes = FlushDriver(self.clock, LoopOffload(), self.store.directory_failed)
        self.following = Following()
        self.partitions = PartitionDriver(
            self.me,
            self.store,
            self.clock,
            settings=self.settings,
            lag_time_max_ms=lag_ms,
            on_unsynced=self.flushes.want,
            neighbours=Neighbours(self.me, "PLAINTEXT"),
            followers=self.following,
            hurries_followers=by_rack,
        )
        self.fetches = FetchDriver(
            self.partitions, self.clock, FetchSessions(100, Random(me)), max_bytes=1 << 30, by_rack=by_rack
        )
        self.produces = ProduceDriver(self.partitions, self.clock, LoopOffload())
        self.isr = IsrDriver(
            self.me, lambda: street.epoch_of(me), street.alter, self.clock, self.partitions, lag_time_max_ms=lag_ms
        )

    def _new_uuid(self) -> Uuid:
        self._uuids += 1
        return Uuid(self._uuids.to_bytes(16, "big"))

    def topic_settings(self, topic: str) -> Any:
        return self.settings.topic(self.image.config(CONFIG_TOPIC, topic))

    def hosted(self, partition: int = 0) -> Hosted:
        return self.partitions.by_id(TOPIC_ID, partition)

    async def take(self, image: ClusterImage) -> None:
        """Takes an image as published."""
        before, self.image = self.image, image.copy()
        self.partitions.publish(self.image, delta_between(before, self.image))
        await self.partitions.taken_up()

    # -- clients

    def produce(self, *partitions: int, acks: int = -1, timeout_ms: int = LONG_MS) -> asyncio.Future[ProduceResponse]:
        """One record to each of the partitions."""
        made = ProduceRequest
        batches = [
            made.PartitionProduceData(index=index, records=batch_of(b"value", timestamp=self.clock.now_ms()))
            for index in partitions or (0,)
        ]
        request = made(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[made.TopicProduceData(topic_id=TOPIC_ID, partition_data=batches)],
        )
        outcome = self.produces.produce(request, PRODUCE_VERSION, lambda _topic: True, listener=LISTENER)
        return _later(outcome) if isinstance(outcome, Later) else _future(outcome)

    def fetch(
        self,
        offset: int,
        *,
        partition: int = 0,
        replica: int = -1,
        replica_epoch: int | None = None,
        epoch: int = -1,
        log_start: int = 0,
        session: tuple[int, int] = (0, -1),
        names: bool = True,
        rack: str = "",
        max_wait_ms: int = 0,
    ) -> asyncio.Future[FetchResponse]:
        """As a consumer, or as the follower `replica`."""
        made = FetchRequest
        known = self.street.epoch_of(replica) if replica >= 0 else -1
        wanted = made.FetchPartition(
            partition=partition,
            fetch_offset=offset,
            current_leader_epoch=epoch,
            log_start_offset=log_start,
            partition_max_bytes=1 << 20,
        )
        request = made(
            replica_state=made.ReplicaState(
                replica_id=replica, replica_epoch=known if replica_epoch is None else replica_epoch
            ),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 30,
            session_id=session[0],
            session_epoch=session[1],
            rack_id=rack,
            topics=[made.FetchTopic(topic_id=TOPIC_ID, partitions=[wanted])] if names else [],
        )
        return _future(self.fetches.fetch(request, FETCH_VERSION, lambda _topic: True, LISTENER))


class Street:
    """The cluster: what the metadata log says, who has heard of it, and a controller that can be told how to answer."""

    def __init__(self, houses: int = 3, **said: Any) -> None:
        self.clock = ManualClock()
        self.image = ClusterImage()
        self.asked: list[AlterPartitionRequest] = []
        self.answers: list[ErrorCode | Exception] = []
        self.held: asyncio.Event | None = None
        for node in range(1, houses + 1):
            self.register(node)
        self.houses = {node: House(node, self, **said) for node in range(1, houses + 1)}

    def __getitem__(self, node: int) -> House:
        return self.houses[node]

    def apply(self, record: Any) -> None:
        self.image.apply(record, Offset(self.image.offset + 1), Epoch(0))

    def epoch_of(self, node: int) -> int:
        return self.image.brokers[node].epoch

    def register(self, node: int, *, fenced: bool = False) -> None:
        endpoint = RegisterBrokerRecord.BrokerEndpoint(name=LISTENER, host=f"host-{node}", port=9_000 + node)
        self.apply(
            RegisterBrokerRecord(
                broker_id=node,
                broker_epoch=self.image.offset + 1,
                end_points=[endpoint],
                rack=f"rack-{node}",
                fenced=fenced,
            )
        )

    async def publish(self, *nodes: int) -> None:
        for node in nodes or self.houses:
            await self.houses[node].take(self.image)

    async def create(self, partitions: int = 1, *, leader: int = 1, isr: tuple[int, ...] = (), **configs: str) -> None:
        """A topic with a replica in every house."""
        self.apply(TopicRecord(name=TOPIC, topic_id=TOPIC_ID))
        everybody = sorted(self.houses)
        for index in range(partitions):
            self.apply(
                PartitionRecord(
                    partition_id=index,
                    topic_id=TOPIC_ID,
                    replicas=everybody,
                    isr=list(isr or everybody),
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[Uuid(bytes(16))] * len(everybody),
                )
            )
        for name, value in configs.items():
            self.configure(CONFIG_TOPIC, TOPIC, name, value)
        await self.publish()

    def configure(self, kind: int, resource: str, name: str, value: str) -> None:
        self.apply(ConfigRecord(resource_type=kind, resource_name=resource, name=name.replace("_", "."), value=value))

    def change(self, partition: int = 0, **said: Any) -> None:
        self.apply(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=partition, **said))

    # -- the controller

    async def alter(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        """Does what it is asked for, unless `answers` has something else for it."""
        assert version == 3
        self.asked.append(request)
        if self.held is not None:
            await self.held.wait()
        await asyncio.sleep(0)
        error = self.answers.pop(0) if self.answers else None
        if isinstance(error, Exception):
            raise error
        reply = AlterPartitionResponse()
        for topic in request.topics:
            answered = AlterPartitionResponse.TopicData(topic_id=topic.topic_id)
            reply.topics.append(answered)
            for wanted in topic.partitions:
                answer = AlterPartitionResponse.PartitionData(partition_index=wanted.partition_index)
                answered.partitions.append(answer)
                if error is not None:
                    answer.error_code = error.code
                    continue
                self.change(wanted.partition_index, isr=[each.broker_id for each in wanted.new_isr_with_epochs])
                found = self.image.topics[TOPIC_ID].partitions[wanted.partition_index]
                answer.leader_id, answer.leader_epoch = found.leader, found.leader_epoch
                answer.isr, answer.partition_epoch = list(found.isr), found.partition_epoch
        return reply

    def asked_for(self) -> list[list[list[tuple[int, int]]]]:
        """By request and partition, the members that were asked for with their broker epochs."""
        return [
            [
                [(each.broker_id, each.broker_epoch) for each in wanted.new_isr_with_epochs]
                for topic in request.topics
                for wanted in topic.partitions
            ]
            for request in self.asked
        ]

    async def until(self, condition: Callable[[], bool]) -> None:
        await patience.until(condition)


def _later(outcome: Later) -> asyncio.Future[Any]:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    outcome.when_ready = lambda: done.set_result(outcome.outcome())
    return done


def _future(outcome: Any) -> asyncio.Future[Any]:
    if isinstance(outcome, asyncio.Future):
        return outcome
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    done.set_result(outcome)
    return done


def bytes_of(data: FetchResponse.PartitionData) -> bytes:
    """The records of an answer that was never encoded."""
    records = data.records
    return b"".join(span.read() for span in records.parts) if isinstance(records, Spans) else bytes(records or b"")


def count(data: FetchResponse.PartitionData) -> int:
    return sum(header.record_count for _, header in scan_batches(bytes_of(data)))


def walk(steps: Callable[[Street], Coroutine[Any, Any, None]], houses: int = 3, **said: Any) -> None:
    async def main() -> None:
        street = Street(houses, **said)
        try:
            async with asyncio.timeout(within(20)):
                await steps(street)
        finally:
            for house in street.houses.values():
                house.fetches.close()
                await house.isr.stop()

    asyncio.run(main())
