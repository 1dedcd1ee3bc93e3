"""The broker of a node: its logs, the partitions that it leads and follows, produces, fetches, groups, housekeeping."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.metadata.entities import CONFIG_TOPIC
from penstock.replication.fetch_session import FetchSessions
from penstock.replication.selection import chooses_by_rack
from penstock.server.context import Services
from penstock.server.dispatch import Dispatch
from penstock.server.drivers.checkpoint_driver import CheckpointDriver
from penstock.server.drivers.compaction_driver import CompactionDriver
from penstock.server.drivers.controller_assignments import DirectoryAssignments
from penstock.server.drivers.controller_producer_ids import ProducerIds
from penstock.server.drivers.coordinator_driver import CoordinatorDriver
from penstock.server.drivers.coordinator_topic import TopicMaker
from penstock.server.drivers.directory_driver import DirectoryDriver
from penstock.server.drivers.fetch_driver import FetchDriver
from penstock.server.drivers.flush_driver import FlushDriver
from penstock.server.drivers.follower_driver import FollowerDriver
from penstock.server.drivers.isr_driver import IsrDriver
from penstock.server.drivers.log_ends import LogEnds
from penstock.server.drivers.partition_driver import SLICE_MS, PartitionDriver
from penstock.server.drivers.partition_neighbours import FOLLOWER_RATE
from penstock.server.drivers.produce_driver import ProduceDriver
from penstock.server.drivers.relocation_driver import RelocationDriver
from penstock.server.drivers.upkeep_driver import UpkeepDriver
from penstock.server.follower_watch import FollowerWatch
from penstock.server.formatting import new_uuid
from penstock.server.group_metrics import ask_ends, group_samples, lag_samples
from penstock.server.node_metrics import (
    directory_samples,
    following_samples,
    partition_samples,
    replication_samples,
    traffic_samples,
    upkeep_samples,
)
from penstock.server.parts.ending import cancel_now
from penstock.server.peers import NetPeers
from penstock.storage.store import LogStore

if TYPE_CHECKING:
    from random import Random

    from penstock.model.config import Endpoint, TopicSettings
    from penstock.model.ids import TopicPartition, Uuid
    from penstock.model.ports import Ports
    from penstock.server.context import Authorizer
    from penstock.server.live_settings import LiveSettings
    from penstock.server.metrics import Metrics
    from penstock.server.parts.control_door import ControlDoor
    from penstock.storage.log import Log

log = logging.getLogger("penstock.node")

RELOCATION_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


class BrokerPart:
    """Everything behind the listeners for clients."""

    def __init__(
        self,
        settings: LiveSettings,
        ports: Ports,
        random: Random,
        control: ControlDoor,
        cluster_id: str,
        authorizer: Authorizer,
        give_up: Callable[[str], None],
    ) -> None:
        self._settings, self._clock, self._control, self._cluster_id = settings, ports.clock, control, cluster_id
        self._opened = False
        node_id, clock, ask = settings.node_id, ports.clock, control.ask
        metadata, self.lifecycle = control.metadata, control.lifecycle
        metadata.on_publish(settings.follow)
        self.peers = NetPeers(
            ports.net, clock,
            client_id=f"penstock-{node_id}",
            dial_first_ms=settings.number("socket.connection.setup.timeout.ms"),
            dial_max_ms=settings.number("socket.connection.setup.timeout.max.ms"),
        )  # fmt: skip
        by_rack = chooses_by_rack(settings.text("replica.selector.class"))
        self.store = LogStore(
            ports.files, settings.log_dirs, settings_for=self._log_settings, new_uuid=lambda: new_uuid(random),
            producer_expiration_ms=settings.number("producer.id.expiration.ms"),
        )  # fmt: skip
        self.flushes = FlushDriver(clock, ports.offload, lambda failure: self.partitions.storage_failed(failure))
        self.partitions = PartitionDriver(
            node_id, self.store, clock,
            topic_settings=self._topic_settings,
            lag_time_max_ms=settings.number("replica.lag.time.max.ms"),
            on_moved=lambda interest: self.fetches.moved(interest),
            on_unsynced=self.flushes.want,
            on_directory_lost=lambda directory_id: self.directories.lost(directory_id),
            inter_broker_listener=settings.inter_broker_listener_name,
            hurries_followers=by_rack,
        )  # fmt: skip
        sessions = FetchSessions(settings.number("max.incremental.fetch.session.cache.slots"), random)
        self.fetches = FetchDriver(
            self.partitions, clock, sessions, max_bytes=lambda: settings.number("fetch.max.bytes"), by_rack=by_rack
        )
        self.produces = ProduceDriver(self.partitions, clock, ports.offload)
        self.checkpoints = CheckpointDriver(
            self.store, clock, ports.offload, storage_failed=self.partitions.storage_failed, at_rest=self._at_rest
        )
        self.partitions.departing = self.checkpoints
        self.upkeep = UpkeepDriver(
            settings, self.partitions, self.store, self.flushes, self.checkpoints, clock, ports.files, ports.offload
        )
        self.compaction = CompactionDriver(settings, self.partitions, self.checkpoints, clock, ports.offload)
        self.isr = IsrDriver(
            node_id, self._broker_epoch, ask, clock, self.partitions,
            lag_time_max_ms=settings.number("replica.lag.time.max.ms"),
        )  # fmt: skip
        self.followers = FollowerDriver(
            node_id, self.peers, clock, settings,
            broker_epoch=self._broker_epoch,
            address_of=self.partitions.address_of,
            storage_failed=self.partitions.storage_failed,
            throttle_rate=lambda: self.partitions.neighbours.throttled_rate(FOLLOWER_RATE),
        )  # fmt: skip
        self.partitions.followers = self.followers
        self.assignments = DirectoryAssignments(node_id, self._broker_epoch, ask, self.partitions.directory_of)
        self.partitions.on_taken_up = self.assignments.check
        self.directories = DirectoryDriver(settings, self.store, self.lifecycle, give_up)
        settings.on_change(self.directories.cordons_changed)
        self.relocations = RelocationDriver(
            self.partitions, self.store, self.checkpoints, clock, ports.offload,
            bytes_per_second=lambda: self.partitions.neighbours.throttled_rate(RELOCATION_RATE),
            cleaning=lambda: self.compaction.cleaning,
            on_moved=self.assignments.check,
        )  # fmt: skip
        self.groups = CoordinatorDriver(
            node_id, self.partitions, settings, clock, random, make_topic=TopicMaker(settings, ask).make
        )
        self.dispatch = Dispatch(unstable=settings.flag("unstable.api.versions.enable"))
        self.services = Services(
            settings=settings, clock=clock, authorizer=authorizer, metadata=metadata,
            controller=control.forwarding,
            partitions=self.partitions, produces=self.produces, fetches=self.fetches, logs=self.store,
            producer_ids=ProducerIds(node_id, self._broker_epoch, ask),
            quorum=control.quorum, apis=self.dispatch, features=control.features,
            groups=self.groups, relocations=self.relocations,
        )  # fmt: skip

    async def _at_rest(self, target: Log) -> None:
        """Returns when nobody works any more in the directory of a log that goes."""
        await self.compaction.at_rest(target)
        await self.flushes.at_rest(target)

    def _broker_epoch(self) -> int:
        return self.lifecycle.broker_epoch

    def _topic_settings(self, topic: str) -> TopicSettings:
        return self._settings.topic(self._control.metadata.image.config(CONFIG_TOPIC, topic))

    def _log_settings(self, name: TopicPartition) -> TopicSettings:
        return self._topic_settings(name.topic)

    # -- coming up

    async def start(self, advertised: list[Endpoint], own_host: str) -> None:
        """Opens the logs, registers, lets partitions take their roles; returns when clients may be let in.

        The image has to be up to date before: a leadership of the past must not be taken up.
        """
        await self._open_logs()
        await self.lifecycle.register(
            advertised,
            own_host,
            self.directories.online(),
            previous_epoch=self.store.clean_broker_epoch,
            cordoned=self.directories.cordoned() or None,
        )
        self._set_strays_aside()
        metadata = self._control.metadata
        metadata.on_publish(self.partitions.publish)
        metadata.on_publish(self.groups.follow)
        metadata.on_publish(self.assignments.follow)
        self.isr.start()
        await self.partitions.taken_up()
        await self.lifecycle.serve()
        await self.partitions.taken_up()
        # What was acknowledged as synced counts again once it is synced again: nobody shall come and miss it.
        await self.flushes.drain()
        self.relocations.resume()

    async def _open_logs(self) -> None:
        """Opens every log, a few milliseconds at a time: the quorum has to go on meanwhile."""
        self._opened = True
        if self._settings.metadata_log_dir in self._settings.log_dirs:
            await self._control.unlock()  # the store locks all its directories before it does anything else
        until = self._clock.monotonic_ms() + SLICE_MS
        opening = self.store.opening(
            cluster_id=self._cluster_id, node_id=self._settings.node_id, now=self._clock.now_ms()
        )
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
        await self.checkpoints.over()

    def _set_strays_aside(self) -> None:
        """Logs that the metadata does not know are kept on disk, but not served. Copies of them go."""
        image, me = self._control.metadata.image, self._settings.node_id
        for key in list(self.store.logs):
            found = image.partition(key.topic_id, key.partition)
            if found is None or me not in found.replicas:
                log.warning("%s is not in the metadata; its directory is set aside", self.store.logs[key].name)
                self.store.set_aside(key, now=self._clock.now_ms())
        for key in list(self.store.futures):
            found = image.partition(key.topic_id, key.partition)
            if found is None or me not in found.replicas:
                self.store.let_go(key, now=self._clock.now_ms(), future=True)
        self.checkpoints.begin()

    def start_upkeep(self) -> None:
        self.upkeep.start()
        self.compaction.start()

    # -- going down

    async def hand_over(self) -> None:
        """Lets others lead what this broker leads. Clients are served meanwhile: they learn their new leaders here."""
        if self._settings.flag("controlled.shutdown.enable"):
            await self.lifecycle.shut_down()

    def stop_serving(self) -> None:
        """Answers those who wait: nothing more will come."""
        self.fetches.close()
        self.groups.close()
        self.directories.close()

    async def close(self) -> None:
        """Ends the housekeeping, flushes, and leaves the marks that spare the next start a scan."""
        await self.lifecycle.fall_silent()
        await self.isr.stop()
        await self.followers.close()
        self.peers.close()
        await self.assignments.close()
        await self.partitions.close()
        await self.upkeep.stop()
        await self.compaction.stop()
        await self.relocations.stop()
        await self.flushes.drain()
        await self.checkpoints.stop()
        if self._opened:
            registered = self.lifecycle.registered
            # One that never got to register has changed nothing since the last clean stop.
            self.store.close(self.lifecycle.broker_epoch if registered else self.store.clean_broker_epoch)

    def crash(self) -> None:
        self.stop_serving()
        self.peers.close()
        for closing in (
            self.isr.stop(), self.followers.close(), self.assignments.close(),
            self.partitions.close(), self.upkeep.stop(), self.compaction.stop(), self.relocations.stop(),
            self.checkpoints.stop(),
        ):  # fmt: skip
            cancel_now(closing)
        for directory in self.store.directories:
            directory.unlock()

    def directory_of(self, path: str) -> Uuid | None:
        """The id of the log directory that a file lies in. Read from the other loop too: neither ever changes."""
        found = [each for each in self.store.directories if path == each.path or path.startswith(f"{each.path}/")]
        return found[0].id if found else None

    # -- being watched

    def measure(self, metrics: Metrics) -> None:
        metrics.register("partitions", lambda: partition_samples(self.partitions))
        watch = FollowerWatch(self._clock, self.partitions.neighbours)
        metrics.register("replication", lambda: replication_samples(self.partitions, self.isr, watch))
        metrics.register("following", lambda: following_samples(self.followers, self.fetches))
        metrics.register("traffic", lambda: traffic_samples(self.partitions, self.produces, self.fetches))
        metrics.register("directories", lambda: directory_samples(self.store))
        metrics.register("upkeep", lambda: upkeep_samples(self.flushes, self.upkeep, self.compaction))
        metrics.register("groups", lambda: group_samples(self.groups))
        ends = LogEnds(self.partitions, self.peers, self._clock)
        metrics.register("lags", lambda: lag_samples(self.groups, ends), lambda: ask_ends(self.groups, ends))

    def ailments(self) -> list[str]:
        return [
            f"log directory {directory.path} is offline: {directory.why_offline}"
            for directory in self.store.directories
            if not directory.online
        ]
