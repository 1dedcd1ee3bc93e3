"""Everything of a node that knows of metadata, on files in memory and with a clock that tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from random import Random
from types import ModuleType
from typing import Any, TypeVar

from penstock.controller.decision import ControllerSettings
from penstock.metadata.image import ClusterImage
from penstock.model.config import BrokerSettings
from penstock.model.ids import Millis, NodeId, Uuid
from penstock.protocol.codec import decode, encode
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.quorum.state import ReplicaKey
from penstock.quorum.voters import Voter, VoterEndpoint
from penstock.server.controller.driver import ControllerDriver, ControllerTimes
from penstock.server.controller.enrolment import ControllerEnrolment
from penstock.server.controller.lifecycle import BrokerLifecycle
from penstock.server.controller.producer_ids import ProducerIds
from penstock.server.doors import Authorizer, Context, ListenerInfo, Services
from penstock.server.formatting import METADATA_DIRECTORY, format_directories, new_uuid
from penstock.server.quorum.driver import QuorumDriver
from penstock.server.quorum.metadata_driver import MetadataDriver
from penstock.server.quorum.metadata_features import Features
from penstock.server.quorum.snapshot_driver import SnapshotDriver, SnapshotSettings
from penstock.server.quorum.snapshot_file import read_checkpoint
from penstock.server.reception.authorize import AllowAll
from penstock.testing.memory_files import MemoryFiles

T = TypeVar("T")

PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
}


class ManualClock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.at_ms = 1_700_000_000_000.0

    def now_ms(self) -> Millis:
        return Millis(int(self.at_ms))

    def monotonic_ms(self) -> float:
        return self.at_ms

    def advance(self, ms: float) -> None:
        self.at_ms += ms


class Overridden:
    """Settings whose topics are all alike, as of now."""

    def __init__(self, settings: Callable[[], Any]) -> None:
        self._settings = settings

    def topic(self, _overrides: Mapping[str, str]) -> Any:
        return self._settings()


class LoopOffload:
    """Runs offloaded calls on the loop, a turn later: never within the caller's step."""

    def call(self, work: Callable[..., T], *args: Any) -> Awaitable[T]:
        async def later() -> T:
            await asyncio.sleep(0)
            return work(*args)

        return later()

    def run(self, task: str, arguments: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        raise AssertionError(f"no helper process is needed here, but {task} was asked for")


class ControlPlane:
    """A node that keeps metadata and answers requests about it, without logs of its own."""

    def __init__(
        self,
        files: MemoryFiles | None = None,
        *,
        directories: tuple[str, ...] = ("/data",),
        properties: Mapping[str, str] | None = None,
        snapshots: SnapshotSettings | None = None,
        idle_interval_ms: int = 0,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.files = files or MemoryFiles()
        self.clock = ManualClock()
        self.random = Random(7)
        given = {**PROPERTIES, "log.dirs": ",".join(directories), **(properties or {})}
        self.settings = BrokerSettings.load(given)
        self.authorizer: Authorizer = authorizer or AllowAll()
        self.failures: list[Exception] = []
        formatted = format_directories(
            self.files,
            directories,
            directories[0],
            None,
            NodeId(1),
            self.settings,
            self.random,
            now=self.clock.now_ms(),
        )
        self.cluster_id, self.directory_ids = formatted.cluster_id, formatted.directory_ids
        self._build(directories[0], snapshots or SnapshotSettings(), idle_interval_ms)

    def _build(self, directory: str, snapshots: SnapshotSettings, idle_interval_ms: int) -> None:
        offload = LoopOffload()
        endpoints = tuple(VoterEndpoint(e.name, e.host, e.port) for e in self.settings.advertised_controller_listeners)
        me = Voter(ReplicaKey(NodeId(1), self.directory_ids[directory]), endpoints)
        self.metadata = MetadataDriver(NodeId(1), self.cluster_id)
        self.quorum = QuorumDriver(
            self.files,
            offload,
            self.clock,
            self.random,
            f"{directory}/{METADATA_DIRECTORY}",
            me,
            self.settings,
            self.metadata,
            on_fatal=self.failures.append,
        )
        bootstrap = f"{directory}/bootstrap.checkpoint"
        self.controller = ControllerDriver(
            self.quorum,
            self.metadata,
            self.clock,
            self.random,
            ControllerSettings.of(self.settings, self.cluster_id),
            ControllerTimes(idle_interval_ms=idle_interval_ms, preferred_leaders_ms=0, unclean_leaders_ms=0),
            bootstrap=lambda: read_checkpoint(bootstrap, self.files.read(bootstrap)).records,
            on_fatal=self.failures.append,
        )
        self.snapshots = SnapshotDriver(
            self.files, offload, self.clock, self.metadata, self.quorum, snapshots, self.failures.append
        )
        self.quorum.attach(lead=self.controller.lead, resign=self.controller.resign)
        self.lifecycle = BrokerLifecycle(
            NodeId(1), self.cluster_id, new_uuid(self.random), self.metadata, self.controller.submit_own
        )
        self.enrolment = ControllerEnrolment(
            NodeId(1),
            new_uuid(self.random),
            self.controller.submit_own,
            self.settings.advertised_controller_listeners,
            "localhost",
        )
        self.producer_ids = ProducerIds(NodeId(1), lambda: self.lifecycle.broker_epoch, self.controller.submit_own)
        self.features = Features(self.metadata, lambda: self.quorum.kraft_version)

    @property
    def image(self) -> ClusterImage:
        return self.metadata.image

    async def start(self, *, previous_epoch: int = -1) -> ControlPlane:
        self.quorum.start()
        self.snapshots.found(self.quorum.snapshots)
        await self.controller.submit_own(self.enrolment.request(), 0)
        await self.lifecycle.register(
            self.settings.advertised_listeners,
            "localhost",
            list(self.directory_ids.values()),
            previous_epoch=previous_epoch,
        )
        await self.lifecycle.serve()
        return self

    async def stop(self) -> None:
        assert await self.lifecycle.shut_down()
        self.controller.resign()
        await self.snapshots.close()
        await self.quorum.close()

    async def abandon(self) -> None:
        """As a crash leaves it: timers go, nothing is handed over or synced."""
        self.controller.resign()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    # Requests

    def services(self) -> Services:
        nothing: Any = None
        return Services(
            settings=self.settings,
            clock=self.clock,
            authorizer=self.authorizer,
            metadata=self.metadata,
            controller=self.controller,
            partitions=nothing,
            produces=nothing,
            fetches=nothing,
            logs=nothing,
            producer_ids=self.producer_ids,
            quorum=self.quorum,
            features=self.features,
            apis=_Apis(),
            groups=nothing,
            transactions=nothing,
            relocations=nothing,
        )

    def context(self, version: int, **said: Any) -> Context:
        return Context(self.services(), -1, version, **said)

    async def ask(self, handler: ModuleType, request: Any, version: int, **said: Any) -> Any:
        """The handler's reply to `request` as a client of `version` would send and read it."""
        seen, _ = decode(request.__class__, version, encode(request, version))
        reply = handler.handle(self.context(version, **said), seen)
        if asyncio.iscoroutine(reply):
            reply = await reply
        read, _ = decode(reply.__class__, version, encode(reply, version))
        return read

    async def create(self, name: str, partitions: int = 1, **configs: str) -> Uuid:
        """A topic, made as a client would; the id it got."""
        config = CreateTopicsRequest.CreatableTopicConfig
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[config(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        reply = await self.controller.submit(CreateTopicsRequest(topics=[topic]), self.context(7))
        assert reply.topics[0].error_code == 0, reply
        return self.image.ids[name]


class _Apis:
    def advertised(self) -> list[tuple[int, int, int]]:
        return [(0, 0, 13), (3, 0, 13), (18, 0, 4)]


def walk(steps: Callable[[ControlPlane], Coroutine[Any, Any, None]], **said: Any) -> None:
    """Starts a node, walks the steps, stops it, and fails when anything about the node did."""

    async def main() -> None:
        plane = await ControlPlane(**said).start()
        await steps(plane)
        await plane.stop()
        assert plane.failures == []

    asyncio.run(main())


WILDCARD = ListenerInfo("PLAINTEXT", "0.0.0.0", 9092)
