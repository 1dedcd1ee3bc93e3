"""The composition root: builds one node out of its rooms, brings it up in order, and takes it down in order.

The only module that knows every concrete class. The order of a start: addresses are bound (nobody is accepted yet), the
metadata quorum reads its log and leads, logs are opened and take their roles, the broker registers and is unfenced, and
only then are clients let in.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from penstock.controller.decision import ControllerSettings
from penstock.metadata.entities import CONFIG_BROKER, CONFIG_TOPIC
from penstock.model.config import BrokerSettings
from penstock.model.config.definition import LONG_MAX
from penstock.model.errors import PenstockError
from penstock.model.ids import TopicPartition, Uuid
from penstock.quorum.state import ReplicaKey
from penstock.quorum.voters import Voter, VoterEndpoint
from penstock.replication.fetch_session import FetchSessions
from penstock.server.authorize import AllowAll
from penstock.server.context import Services
from penstock.server.dispatch import Dispatch
from penstock.server.drivers.compaction_driver import CompactionDriver
from penstock.server.drivers.controller_assignments import DirectoryAssignments
from penstock.server.drivers.controller_driver import ControllerDriver, ControllerTimes
from penstock.server.drivers.controller_lifecycle import BrokerLifecycle
from penstock.server.drivers.controller_producer_ids import ProducerIds
from penstock.server.drivers.coordinator_driver import CoordinatorDriver
from penstock.server.drivers.coordinator_topic import TopicMaker
from penstock.server.drivers.directory_driver import DirectoryDriver
from penstock.server.drivers.fetch_driver import FetchDriver
from penstock.server.drivers.flush_driver import FlushDriver
from penstock.server.drivers.metadata_driver import MetadataDriver
from penstock.server.drivers.metadata_features import Features
from penstock.server.drivers.partition_driver import SLICE_MS, PartitionDriver
from penstock.server.drivers.produce_driver import ProduceDriver
from penstock.server.drivers.quorum_driver import QuorumDriver
from penstock.server.drivers.relocation_driver import RelocationDriver
from penstock.server.drivers.snapshot_driver import SnapshotDriver, SnapshotSettings
from penstock.server.drivers.snapshot_file import BOOTSTRAP_CHECKPOINT, read_checkpoint
from penstock.server.drivers.upkeep_driver import UpkeepDriver
from penstock.server.formatting import METADATA_DIRECTORY, format_directories, new_uuid
from penstock.server.group_metrics import group_samples
from penstock.server.http_admin import AdminServer
from penstock.server.listener import Listeners
from penstock.server.live_settings import LiveSettings
from penstock.server.loop_watch import LoopWatch
from penstock.server.metrics import Metrics, connection_samples, loop_samples, request_samples
from penstock.server.node_metrics import partition_samples, traffic_samples, upkeep_samples
from penstock.server.reception import Reception
from penstock.storage.meta_properties import read_meta_properties
from penstock.storage.store import LogStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.metadata.records import Record
    from penstock.model.config import TopicSettings
    from penstock.model.ports import Clock, Files, Ports
    from penstock.server.context import Authorizer, Handler, QuorumDoor
    from penstock.server.formatting import Formatted

log = logging.getLogger("penstock.node")

DRAIN_MS = 2_000.0
RELOCATION_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
NOT_FORMATTED = "has no meta.properties; run `penstock server format --config FILE` first"


def format_for(
    settings: BrokerSettings,
    *,
    files: Files,
    clock: Clock,
    random: Random,
    own_host: str,
    cluster_id: str | None = None,
    ignore_formatted: bool = True,
) -> Formatted:
    """Formats the directories that `settings` name, as far as they are not formatted yet."""
    return format_directories(
        files,
        settings.log_dirs,
        settings.metadata_log_dir,
        cluster_id,
        settings.node_id,
        settings,
        random,
        own_host=own_host,
        now=clock.now_ms(),
        ignore_formatted=ignore_formatted,
    )


def _bootstrap_records(files: Files, directory: str) -> list[Record]:
    """What a new cluster starts from, as the directory was formatted; nothing means this release's own levels."""
    path = f"{directory}/{BOOTSTRAP_CHECKPOINT}"
    return read_checkpoint(path, files.read(path)).records if files.exists(path) else []


def _snapshot_settings(settings: BrokerSettings) -> SnapshotSettings:
    return SnapshotSettings(
        max_bytes_between=settings.number("metadata.log.max.record.bytes.between.snapshots"),
        max_interval_ms=settings.number("metadata.log.max.snapshot.interval.ms"),
        retention_bytes=settings.number("metadata.max.retention.bytes"),
        retention_ms=settings.number("metadata.max.retention.ms"),
    )


class Node:
    """One broker and controller in one process. `start` once, `stop` once."""

    def __init__(
        self,
        settings: BrokerSettings,
        ports: Ports,
        *,
        random: Random,
        formats_itself: bool,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.settings = LiveSettings(settings)
        self._clock, self._files, self._net, self._offload = ports.clock, ports.files, ports.net, ports.offload
        self._random, self._formats_itself = random, formats_itself
        self._authorizer = authorizer or AllowAll()
        self._listeners = Listeners(settings)
        self._stopping = False
        self._failure: str | None = None
        self._failed = asyncio.Event()
        self.ready = False

    @property
    def port(self) -> int:
        """The port of the first listener for clients."""
        return self._listeners.advertised(self._net.host_name())[0].port

    @property
    def admin_port(self) -> int:
        """Where metrics are; 0 when they are not served."""
        return self._admin.port

    @property
    def addresses(self) -> list[str]:
        return [f"{each.host}:{each.port}" for each in self._listeners.advertised(self._net.host_name())]

    # -- coming up

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        await self._listeners.open(self._net)
        try:
            cluster_id, directory_id = self._identity()
            self._build(loop, cluster_id, directory_id)
            self._quorum.start()
            self._snapshots.found(self._quorum.snapshots)
            await self._metadata.published(self._quorum.end)
            await self._open_logs(cluster_id)
            await self._join()
            await self._open_doors()
        except BaseException:
            self._listeners.stop_accepting()
            self._offload.close()
            raise

    def _identity(self) -> tuple[str, Uuid]:
        """(cluster id, id of the metadata directory), from the disk."""
        if self._formats_itself:
            format_for(
                self._bound_settings(),
                files=self._files,
                clock=self._clock,
                random=self._random,
                own_host=self._net.host_name(),
            )
        directory = self.settings.metadata_log_dir
        found = read_meta_properties(self._files, directory)
        if found is None:
            raise PenstockError(f"{directory} {NOT_FORMATTED}")
        if found.node_id != self.settings.node_id:
            raise PenstockError(f"{directory} belongs to node {found.node_id}, not to {self.settings.node_id}")
        return found.cluster_id, found.directory_id or new_uuid(self._random)

    def _bound_settings(self) -> BrokerSettings:
        """The settings with real ports where a free one was asked for, because the voter set names them."""
        listeners = ",".join(
            f"{each.endpoint.name}://{each.endpoint.host}:{each.info.port}" for each in self._listeners
        )
        return BrokerSettings.load({**self.settings.properties, "listeners": listeners})

    def _build(self, loop: asyncio.AbstractEventLoop, cluster_id: str, directory_id: Uuid) -> None:
        settings, clock, files, random = self.settings, self._clock, self._files, self._random
        node_id = settings.node_id
        self._metadata = MetadataDriver(node_id, cluster_id)
        self._metadata.on_publish(settings.follow)
        controllers = self._bound_settings().advertised_controller_listeners
        me = Voter(
            ReplicaKey(node_id, directory_id),
            tuple(VoterEndpoint(each.name, each.host or self._net.host_name(), each.port) for each in controllers),
        )
        self._quorum = QuorumDriver(
            files, self._offload, clock, random, f"{settings.metadata_log_dir}/{METADATA_DIRECTORY}", me, settings,
            self._metadata, on_fatal=self._fatal,
        )  # fmt: skip
        self._controller = ControllerDriver(
            self._quorum, self._metadata, clock, random, ControllerSettings.of(settings, cluster_id),
            ControllerTimes.of(settings), bootstrap=lambda: _bootstrap_records(files, settings.metadata_log_dir),
            on_fatal=self._fatal,
        )  # fmt: skip
        self._quorum.attach(lead=self._controller.lead, resign=self._controller.resign)
        self._snapshots = SnapshotDriver(
            files,
            self._offload,
            clock,
            self._metadata,
            self._quorum,
            _snapshot_settings(settings),
            self._fatal,
        )
        self._store = LogStore(
            files, settings.log_dirs, settings_for=self._log_settings, new_uuid=lambda: new_uuid(random),
            producer_expiration_ms=settings.number("producer.id.expiration.ms"),
        )  # fmt: skip
        self._flushes = FlushDriver(clock, self._offload, lambda failure: self._partitions.storage_failed(failure))
        self._partitions = PartitionDriver(
            node_id, self._store, clock,
            topic_settings=self._topic_settings,
            lag_time_max_ms=settings.number("replica.lag.time.max.ms"),
            on_moved=lambda interest: self._fetches.moved(interest),
            on_unsynced=self._flushes.want,
            on_directory_lost=lambda directory_id: self._directories.lost(directory_id),
        )  # fmt: skip
        sessions = FetchSessions(settings.number("max.incremental.fetch.session.cache.slots"), random)
        self._fetches = FetchDriver(
            self._partitions, clock, sessions, max_bytes=lambda: settings.number("fetch.max.bytes")
        )
        self._produces = ProduceDriver(self._partitions, clock, self._offload)
        self._upkeep = UpkeepDriver(settings, self._partitions, self._store, self._flushes, clock, files, self._offload)
        self._compaction = CompactionDriver(settings, self._partitions, self._store, clock, self._offload)
        self._lifecycle = BrokerLifecycle(
            node_id, cluster_id, new_uuid(random), self._metadata, self._controller.submit_own,
            heartbeat_interval_ms=settings.number("broker.heartbeat.interval.ms"), rack=settings.rack,
        )  # fmt: skip
        self._assignments = DirectoryAssignments(
            node_id, lambda: self._lifecycle.broker_epoch, self._controller.submit_own, self._partitions.directory_of
        )
        self._partitions.on_taken_up = self._assignments.check
        self._directories = DirectoryDriver(settings, self._store, self._lifecycle, self._give_up)
        settings.on_change(self._directories.cordons_changed)
        self._relocations = RelocationDriver(
            self._partitions, self._store, clock, self._offload,
            bytes_per_second=self._relocation_rate,
            cleaning=lambda: self._compaction.cleaning,
            on_moved=self._assignments.check,
        )  # fmt: skip
        self._groups = CoordinatorDriver(
            node_id, self._partitions, settings, clock, random,
            make_topic=TopicMaker(settings, self._controller.submit_own).make,
        )  # fmt: skip
        producer_ids = ProducerIds(node_id, lambda: self._lifecycle.broker_epoch, self._controller.submit_own)
        self._dispatch = Dispatch(unstable=settings.flag("unstable.api.versions.enable"))
        self._services = Services(
            settings=settings, clock=clock, authorizer=self._authorizer, metadata=self._metadata,
            controller=self._controller,
            partitions=self._partitions, produces=self._produces, fetches=self._fetches, logs=self._store,
            producer_ids=producer_ids, quorum=cast("QuorumDoor", self._quorum), apis=self._dispatch,
            features=Features(self._metadata, lambda: self._quorum.kraft_version), groups=self._groups,
            relocations=self._relocations,
        )  # fmt: skip
        self._reception = Reception(loop, self._services, self._dispatch)
        self._watch = LoopWatch(loop)
        self._admin = AdminServer(loop, self._metrics(), health=self._ailments, readiness=self._obstacles)

    def _topic_settings(self, topic: str) -> TopicSettings:
        return self.settings.topic(self._metadata.image.config(CONFIG_TOPIC, topic))

    def _log_settings(self, name: TopicPartition) -> TopicSettings:
        return self._topic_settings(name.topic)

    def _relocation_rate(self) -> int:
        """How many bytes a second may be copied between log directories; only a dynamic config can bound it."""
        for broker in (str(self.settings.node_id), ""):
            rate = self._metadata.image.config(CONFIG_BROKER, broker).get(RELOCATION_RATE)
            if rate is not None:
                return int(rate)
        return LONG_MAX

    async def _open_logs(self, cluster_id: str) -> None:
        """Opens every log, a few milliseconds at a time: the quorum has to go on meanwhile."""
        until = self._clock.monotonic_ms() + SLICE_MS
        opening = self._store.opening(cluster_id=cluster_id, node_id=self.settings.node_id, now=self._clock.now_ms())
        for opened in opening:
            if opened.scanned_bytes:
                log.info(
                    "recovered %s from offset %d: %d bytes read, %d cut",
                    opened.name,
                    opened.recovery_point,
                    opened.scanned_bytes,
                    opened.cut_bytes,
                )
            if self._clock.monotonic_ms() >= until:
                await asyncio.sleep(0)
                until = self._clock.monotonic_ms() + SLICE_MS

    async def _join(self) -> None:
        """Registers this node, lets its partitions take their roles, and asks to be let loose on clients."""
        own_host = self._net.host_name()
        await self._lifecycle.register_controller(self._bound_settings().advertised_controller_listeners, own_host)
        await self._lifecycle.register(
            self._listeners.advertised(own_host),
            own_host,
            self._directories.online(),
            previous_epoch=self._store.clean_broker_epoch,
            cordoned=self._directories.cordoned() or None,
        )
        self._set_strays_aside()
        self._metadata.on_publish(self._partitions.publish)
        self._metadata.on_publish(self._groups.follow)
        self._metadata.on_publish(self._assignments.follow)
        await self._partitions.taken_up()
        await self._lifecycle.serve()
        await self._partitions.taken_up()
        # What was acknowledged as synced counts again once it is synced again: nobody shall come and miss it.
        await self._flushes.drain()
        self._relocations.resume()

    def _set_strays_aside(self) -> None:
        """Logs that the metadata does not know are kept on disk, but not served. Copies of them go."""
        image, me = self._metadata.image, self.settings.node_id
        for key in list(self._store.logs):
            found = image.partition(key.topic_id, key.partition)
            if found is None or me not in found.replicas:
                log.warning("%s is not in the metadata; its directory is set aside", self._store.logs[key].name)
                self._store.set_aside(key)
        for key in list(self._store.futures):
            found = image.partition(key.topic_id, key.partition)
            if found is None or me not in found.replicas:
                self._store.remove(key, now=self._clock.now_ms(), future=True)

    async def _open_doors(self) -> None:
        await self._listeners.serve(self._reception)
        host, _, port = self.settings.text("penstock.admin.listener").rpartition(":")
        if port:
            await self._admin.open(self._net, host, int(port))
        self._upkeep.start()
        self._compaction.start()
        self._watch.start()
        self.ready = True

    # -- going down

    async def stop(self) -> None:
        """Hands over, answers what runs, flushes and leaves the marks that spare the next start a scan."""
        if self._stopping:
            return
        self._stopping, self.ready = True, False
        self._watch.stop()
        self._listeners.stop_accepting()
        self._fetches.close()
        self._groups.close()
        await self._reception.close(DRAIN_MS)
        self._admin.close()
        await self._assignments.close()
        await self._partitions.close()
        await self._lifecycle.shut_down()
        await self._upkeep.stop()
        await self._compaction.stop()
        await self._relocations.stop()
        await self._flushes.drain()
        await self._snapshots.close()
        self._store.close(self._lifecycle.broker_epoch)
        await self._quorum.close()
        self._offload.close()

    async def failed(self) -> str:
        """Returns why when this node cannot go on; whoever runs it ends it then."""
        await self._failed.wait()
        assert self._failure is not None, "a failure has a reason"
        return self._failure

    def _fatal(self, why: Exception) -> None:
        self._give_up(f"the metadata quorum has stopped: {why}")

    def _give_up(self, why: str) -> None:
        """The metadata log or the last log directory is gone: there is nothing left to serve."""
        log.critical("this node cannot go on: %s", why)
        self._failure = self._failure or why
        self.ready = False
        self._failed.set()

    # -- being tested

    def override(self, api: str, wrap: Callable[[Handler], Handler]) -> None:
        """Puts something around the handler of an API."""
        self._dispatch.override(api, wrap)

    def time_moved(self, ms: float) -> None:
        """The clock was moved by hand."""
        self._watch.time_moved(ms)

    # -- being watched

    def _metrics(self) -> Metrics:
        metrics = Metrics()
        metrics.register("requests", lambda: request_samples(self._dispatch))
        metrics.register("connections", lambda: connection_samples(self._listeners, self._reception))
        metrics.register("partitions", lambda: partition_samples(self._partitions))
        metrics.register("traffic", lambda: traffic_samples(self._produces, self._fetches))
        metrics.register("upkeep", lambda: upkeep_samples(self._flushes, self._upkeep, self._compaction))
        metrics.register("groups", lambda: group_samples(self._groups))
        metrics.register("loop", lambda: loop_samples(self._watch))
        return metrics

    def _ailments(self) -> list[str]:
        reasons = [] if self._failure is None else [self._failure]
        reasons += [
            f"log directory {directory.path} is offline: {directory.why_offline}"
            for directory in self._store.directories
            if not directory.online
        ]
        return reasons

    def _obstacles(self) -> list[str]:
        reasons = [] if self._failure is None else [self._failure]
        if self._stopping:
            reasons.append("the node is stopping")
        elif self._lifecycle.fenced:
            reasons.append("the controller keeps this broker fenced")
        return reasons
