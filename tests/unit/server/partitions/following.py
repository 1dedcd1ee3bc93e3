"""Brokers on files in memory: real logs and drivers, and between them nothing but encoded messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

from penstock.kernels import read_header
from penstock.metadata.difference import delta_between
from penstock.metadata.image import ClusterImage
from penstock.model.config import BrokerSettings
from penstock.model.ids import Epoch, NodeId, Offset, Uuid
from penstock.protocol.codec import decode, encode
from penstock.protocol.disk.metadata_topics import PartitionRecord, TopicRecord
from penstock.protocol.frame import decode_response, encode_response_parts
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.wire import schema_of
from penstock.replication.fetch_session import FetchSessions
from penstock.server.handlers import list_offsets
from penstock.server.live_settings import LiveSettings
from penstock.server.partitions.fetching.driver import FetchDriver
from penstock.server.partitions.following.driver import FollowerDriver
from penstock.server.partitions.hosted import Hosted
from penstock.server.partitions.neighbours import Neighbours
from penstock.server.partitions.partition_driver import PartitionDriver
from penstock.server.partitions.upkeep.checkpoints import CheckpointDriver
from penstock.server.partitions.upkeep.driver import UpkeepDriver
from penstock.server.partitions.upkeep.flushing import FlushDriver
from penstock.server.peers import Address
from penstock.storage.log import Log
from penstock.storage.store import LogStore
from penstock.testing.memory_files import MemoryFiles
from penstock.transport.dial import LinkError, Severed
from tests.patience import until
from tests.unit.server.served import PROPERTIES
from tests.unit.storage.batches import batch
from tests.walks.control_plane import LoopOffload, ManualClock, Overridden

TOPIC_ID = Uuid(b"\x07" * 16)


class Broker:
    """One broker with its disk. `restart` is another life on the same disk."""

    def __init__(self, world: World, node: int, files: MemoryFiles | None = None) -> None:
        self.world, self.node, self.files = world, NodeId(node), files or MemoryFiles()
        self.unreachable = False
        self.failures: list[Any] = []
        self._uuids = 0
        self._start()

    def _start(self) -> None:
        clock = self.world.clock
        self.settings = LiveSettings(BrokerSettings.load({**PROPERTIES, **self.world.properties}))
        self.files.makedirs("/data")
        self.files.sync_dir("/")
        self.store = LogStore(
            self.files, ["/data"], settings_for=lambda _name: self.world.topic_settings(), new_uuid=self._new_uuid
        )
        self.store.open(cluster_id="cluster", node_id=self.node, now=clock.now_ms())
        self.flushes = FlushDriver(clock, LoopOffload(), self._failed)
        self.partitions = PartitionDriver(
            self.node,
            self.store,
            clock,
            settings=Overridden(self.world.topic_settings),
            lag_time_max_ms=30_000,
            on_unsynced=self.flushes.want,
            neighbours=Neighbours(self.node, "PLAINTEXT"),
        )
        sessions: FetchSessions[Any, Any] = FetchSessions(self.world.session_slots, Random(self.node))
        self.fetches = FetchDriver(self.partitions, clock, sessions, max_bytes=57_671_680)
        self.followers = FollowerDriver(
            self.node,
            Wire(self.world, self.node),
            clock,
            self.settings,
            broker_epoch=lambda: 100 + self.node,
            address_of=lambda node: Address("broker", node) if node in self.world.brokers else None,
            storage_failed=self._failed,
            throttle_rate=lambda: self.world.throttle_rate,
        )
        self.partitions.followers = self.followers
        self.checkpoints = CheckpointDriver(
            self.store, clock, LoopOffload(), storage_failed=self._failed, at_rest=self.flushes.at_rest
        )
        self.partitions.departing = self.checkpoints
        self.upkeep = UpkeepDriver(
            self.settings,
            self.partitions,
            self.store,
            self.flushes,
            self.checkpoints,
            clock,
            self.files,
            LoopOffload(),
        )
        self.image = ClusterImage()

    def _new_uuid(self) -> Uuid:
        self._uuids += 1
        return Uuid(bytes([self.node, self.files.lives]) + self._uuids.to_bytes(14, "big"))

    def _failed(self, failure: Any) -> None:
        self.failures.append(failure)
        self.partitions.storage_failed(failure)

    async def publish(self, image: ClusterImage) -> None:
        before, self.image = self.image, image.copy()
        self.partitions.publish(self.image, delta_between(before, self.image))
        await self.partitions.taken_up()

    async def stop(self) -> None:
        await self.followers.close()
        self.fetches.close()
        await self.partitions.close()
        await self.flushes.drain()

    async def restart(self, *, crash: Random | None = None) -> None:
        """A clean stop and a new life; or one after a power cut, where chance decides what survives unsynced."""
        await self.stop()
        if crash is not None:
            lucky = crash.random() < 0.5
            self.files.crash(
                lambda _path, size: crash.randint(0, size) if lucky else 0, keep_names=crash.random() < 0.5
            )
        else:
            self.store.close(1)
        self._start()
        await self.publish(self.world.image)

    async def killed(self) -> None:
        """A new life after kill -9: what was written is there, synced or not."""
        await self.stop()
        self.files.kill()
        self._start()
        await self.publish(self.world.image)

    # -- one partition

    def hosted(self, partition: int = 0) -> Hosted:
        return self.partitions.by_id(TOPIC_ID, partition)

    def log(self, partition: int = 0) -> Log:
        return self.hosted(partition).require_log()

    def produce(
        self, count: int = 1, *, records: int = 1, size: int = 200, partition: int = 0, producer: int = -1
    ) -> None:
        """`count` batches as a client's, appended by this leader without waiting for anybody."""
        hosted = self.hosted(partition)
        log, now = hosted.require_log(), self.world.clock.now_ms()
        for _ in range(count):
            known = log.producers.get(producer)
            sequence = known.last_sequence + 1 if known is not None else 0
            identity = (producer, 0, sequence) if producer >= 0 else (-1, -1, -1)
            value = b"%d of %d " % (log.next, self.node) + b"x" * size
            made = batch(records, value=value, timestamp=now, producer=identity)
            hosted.append(made, read_header(made), 1, now)

    def trim(self, to: int, partition: int = 0) -> None:
        """Everything before `to` goes, as DeleteRecords does it."""
        self.log(partition).advance_start(Offset(to))
        self.log(partition).retain(self.world.clock.now_ms())
        self.hosted(partition).moved()

    def segments(self, partition: int = 0) -> dict[str, bytes]:
        """The segment files, up to what is written; index files are compared by `indexes`."""
        log = self.log(partition)
        return {f"{segment.base}": segment.file.pread(segment.size, 0) for segment in log.segments if segment.size}


class World:
    """A few brokers that share one image. `lead` is what the controller would decide."""

    def __init__(
        self,
        nodes: int = 2,
        *,
        partitions: int = 1,
        segment_bytes: int = 0,
        topic: dict[str, str] | None = None,
        properties: dict[str, str] | None = None,
        session_slots: int = 100,
        throttle_rate: int = 1 << 60,
    ) -> None:
        self.clock = ManualClock()
        self.properties = {"replica.fetch.backoff.ms": "40", "replica.fetch.wait.max.ms": "20", **(properties or {})}
        self.configs, self.segment_bytes = topic or {}, segment_bytes
        self.session_slots, self.throttle_rate = session_slots, throttle_rate
        self._plain = BrokerSettings.load(PROPERTIES)
        self.image = ClusterImage()
        self.asked: list[tuple[int, Any]] = []
        self.spoil: Callable[[Any], Any] = lambda reply: reply
        self.count = partitions
        self.nodes = list(range(1, nodes + 1))
        self.brokers: dict[int, Broker] = {}
        for node in self.nodes:
            self.brokers[node] = Broker(self, node)
        self.epoch = 0
        self._apply(TopicRecord(name="t", topic_id=TOPIC_ID))

    def topic_settings(self) -> Any:
        found = self._plain.topic(self.configs)
        return replace(found, segment_bytes=self.segment_bytes) if self.segment_bytes else found

    def _apply(self, record: object) -> None:
        self.image.apply(record, Offset(self.image.offset + 1), Epoch(0))

    async def lead(self, leader: int, *, isr: Sequence[int] = (), told: Sequence[int] | None = None) -> None:
        """`leader` leads every partition in a new epoch; `told` are the brokers that hear of it now."""
        self.epoch += 1
        for partition in range(self.count):
            self._apply(
                PartitionRecord(
                    partition_id=partition,
                    topic_id=TOPIC_ID,
                    replicas=self.nodes,
                    isr=list(isr or self.nodes),
                    leader=leader,
                    leader_epoch=self.epoch,
                    partition_epoch=self.epoch,
                    directories=[Uuid(bytes(16))] * len(self.nodes),
                )
            )
        for node in self.nodes if told is None else told:
            await self.brokers[node].publish(self.image)

    async def level(self, *, among: Sequence[int] = (), partition: int = 0) -> None:
        """Waits until all have what the leader has, and know that all of it is committed."""
        nodes = list(among or self.nodes)

        def same() -> bool:
            logs = [self.brokers[node].log(partition) for node in nodes]
            leader = next(self.brokers[node].log(partition) for node in nodes if self._leads(node, partition))
            if any(each.log_start < leader.log_start for each in logs):
                return False
            return {(each.next, each.committed) for each in logs} == {(leader.next, leader.next)}

        await until(same, lambda: str([self.brokers[node].log(partition).describe() for node in nodes]))

    def _leads(self, node: int, partition: int) -> bool:
        return self.brokers[node].hosted(partition).state.leading

    async def stop(self) -> None:
        for broker in self.brokers.values():
            await broker.stop()


class Wire:
    """Peers that encode what is asked, hand it to the other broker's drivers, and decode what those answer."""

    def __init__(self, world: World, me: NodeId) -> None:
        self.world, self.me = world, me
        self.hung_up: list[str] = []
        self.dialled: set[str] = set()
        self.answering: list[asyncio.Task[None]] = []

    async def ask(self, to: Address, message: Any, version: int, *, purpose: str, timeout_ms: float) -> Any:
        other = self.world.brokers[to.port]
        request, _ = decode(type(message), version, encode(message, version))
        self.world.asked.append((self.me, request))
        await asyncio.sleep(0)
        if other.unreachable or self.world.brokers[self.me].unreachable:
            raise Severed(to.host, to.port, "the link is cut")
        if isinstance(request, FetchRequest):
            answer = other.fetches.fetch(request, version, lambda _topic: True)
            if isinstance(answer, Awaitable):
                answer = await answer
        else:
            node = SimpleNamespace(partitions=other.partitions)
            context: Any = SimpleNamespace(node=node, api_version=version, allow=lambda *_: True)
            answer = list_offsets.handle(context, request)
        frame = _framed(answer, version)
        await asyncio.sleep(0)
        if other.unreachable:
            raise Severed(to.host, to.port, "the link is cut")
        _, reply = decode_response(memoryview(frame), schema_of(type(message)).key, version)
        return self.world.spoil(reply)

    def post(
        self,
        to: Address,
        key: int,
        version: int,
        body: bytes | bytearray,
        *,
        purpose: str,
        timeout_ms: float,
        read: Callable[[bytearray], Any],
        on_reply: Callable[[Any, LinkError | None], None],
    ) -> bool:
        """The first fetch of a purpose has to dial; those after it go the short way."""
        if purpose not in self.dialled:
            self.dialled.add(purpose)
            return False
        assert key == schema_of(FetchRequest).key
        request, end = decode(FetchRequest, version, body)
        assert end == len(body)
        assert encode(request, version) == body, "what is written by hand is what the codec writes"

        async def answer() -> None:
            try:
                reply = await self.ask(to, request, version, purpose=purpose, timeout_ms=timeout_ms)
            except LinkError as failure:
                on_reply(None, failure)
            else:
                on_reply(read(_framed(reply, version)), None)

        self.answering.append(asyncio.get_running_loop().create_task(answer()))
        return True

    def hang_up(self, to: Address, purpose: str) -> None:
        self.hung_up.append(purpose)
        self.dialled.discard(purpose)


def _framed(answer: Any, version: int) -> bytearray:
    """The frame without its length, with what spans hold read into it."""
    whole = bytearray()
    for part in encode_response_parts(1, answer, schema_of(type(answer)).key, version):
        whole += part if isinstance(part, (bytes, bytearray, memoryview)) else part.read()
    return whole[4:]


def walk(steps: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(steps())


__all__ = ["TOPIC_ID", "Broker", "LinkError", "World", "until", "walk"]
