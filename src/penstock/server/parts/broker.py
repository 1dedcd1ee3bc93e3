"""The broker of a node: its logs, the partitions that it leads and follows, produces, fetches, groups, housekeeping."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from penstock.metadata.entities import CONFIG_TOPIC
from penstock.model.ids import OFFSETS_TOPIC, new_uuid
from penstock.replication.fetch_session import FetchSessions
from penstock.replication.selection import chooses_by_rack
from penstock.server.controller.assignments import DirectoryAssignments
from penstock.server.controller.producer_ids import ProducerIds
from penstock.server.coordinating.groups import GroupKind
from penstock.server.coordinating.runtime import Runtime
from penstock.server.coordinating.topic import TopicMaker
from penstock.server.coordinating.transactions import TransactionKind, Transactions
from penstock.server.dialling import towards_brokers
from penstock.server.doors import Services
from penstock.server.loops.slices import Slices
from penstock.server.metrics.group_metrics import ask_ends, group_samples, lag_samples
from penstock.server.metrics.node_metrics import (
    directory_samples,
    following_samples,
    partition_samples,
    producer_samples,
    replication_samples,
    traffic_samples,
    upkeep_samples,
)
from penstock.server.metrics.quota_metrics import quota_samples
from penstock.server.metrics.transaction_metrics import transaction_samples, verification_samples
from penstock.server.partitions.directory_driver import DirectoryDriver
from penstock.server.partitions.fetching.driver import FetchDriver
from penstock.server.partitions.following.driver import FollowerDriver
from penstock.server.partitions.following.watch import FollowerWatch
from penstock.server.partitions.isr_driver import IsrDriver
from penstock.server.partitions.log_ends import LogEnds
from penstock.server.partitions.neighbours import FOLLOWER_RATE, Neighbours
from penstock.server.partitions.partition_driver import PartitionDriver
from penstock.server.partitions.producing.driver import ProduceDriver
from penstock.server.partitions.producing.transactions import Transactions as ProducedTransactions
from penstock.server.partitions.relocation_driver import RelocationDriver
from penstock.server.partitions.upkeep.checkpoints import CheckpointDriver
from penstock.server.partitions.upkeep.compaction import CompactionDriver
from penstock.server.partitions.upkeep.driver import UpkeepDriver
from penstock.server.partitions.upkeep.flushing import FlushDriver
from penstock.server.partitions.upkeep.strays import StrayDriver
from penstock.server.parts.ending import cancel_now
from penstock.server.peers import NetPeers
from penstock.server.reception.authorize import follow, load
from penstock.server.reception.dispatch import Dispatch
from penstock.server.reception.quotas import LimitedClients
from penstock.storage.store import LogStore

if TYPE_CHECKING:
    from random import Random

    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import Endpoint, TopicSettings
    from penstock.model.ids import TopicPartition, Uuid
    from penstock.model.ports import Ports
    from penstock.server.doors import AuditDoor, Authorizer
    from penstock.server.live_settings import LiveSettings
    from penstock.server.metrics.page import Metrics
    from penstock.server.partitions.fetching.reading import Ask
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.parts.control_door import ControlDoor
    from penstock.storage.log import Log

log = logging.getLogger("penstock.node")

QUOTAS_SWEPT_MS: Final = 3_600_000
"""How often clients that use nothing any more are forgotten; until then metrics tell of them."""
RELOCATION_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


class CoordinatorPart(Protocol):
    """What a broker does with a coordinator of any kind, besides giving it to handlers."""

    def follow(self, image: ClusterImage, delta: Delta) -> None: ...
    def close(self) -> None: ...


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
        audit: AuditDoor | None = None,
    ) -> None:
        self._settings, self._clock, self._control, self._cluster_id = settings, ports.clock, control, cluster_id
        self._opened = False
        node_id, clock, ask = settings.node_id, ports.clock, control.ask
        metadata, self.lifecycle = control.metadata, control.lifecycle
        metadata.on_publish(settings.follow)
        self._authorizer = authorizer
        follow(authorizer, metadata)
        self.quotas = LimitedClients(
            clock.monotonic_ms,
            settings.number("quota.window.size.seconds") * 1_000,
            settings.number("quota.window.num"),
        )
        metadata.on_publish(self.quotas.follow)
        self.peers = NetPeers(
            ports.net, clock,
            client_id=f"penstock-{node_id}",
            dial_first_ms=settings.number("socket.connection.setup.timeout.ms"),
            dial_max_ms=settings.number("socket.connection.setup.timeout.max.ms"),
            security=towards_brokers(settings, ports.offload),
        )  # fmt: skip
        by_rack = chooses_by_rack(settings.text("replica.selector.class"))
        self.store = LogStore(
            ports.files, settings.log_dirs, settings_for=self._log_settings, new_uuid=lambda: new_uuid(random),
            producer_expiration_ms=settings.number("producer.id.expiration.ms"),
        )  # fmt: skip
        storage_failed, broker_epoch = self.store.directory_failed, self.lifecycle.current_epoch
        self.flushes = FlushDriver(clock, ports.offload, storage_failed)
        self.checkpoints = CheckpointDriver(
            self.store, clock, ports.offload, storage_failed=storage_failed, at_rest=self._at_rest
        )
        self.directories = DirectoryDriver(settings, self.store, self.lifecycle, give_up)
        neighbours = Neighbours(node_id, settings.inter_broker_listener_name)
        self.followers = FollowerDriver(
            node_id, self.peers, clock, settings,
            broker_epoch=broker_epoch,
            address_of=neighbours.address_of,
            storage_failed=storage_failed,
            throttle_rate=partial(neighbours.throttled_rate, FOLLOWER_RATE),
        )  # fmt: skip
        self.assignments = DirectoryAssignments(node_id, broker_epoch, ask, self.store.home_of)
        self.partitions = PartitionDriver(
            node_id, self.store, clock,
            settings=settings,
            lag_time_max_ms=settings.number("replica.lag.time.max.ms"),
            on_unsynced=self.flushes.want,
            on_directory_lost=self.directories.lost,
            on_taken_up=self.assignments.check,
            neighbours=neighbours,
            followers=self.followers,
            departing=self.checkpoints,
            hurries_followers=by_rack,
        )  # fmt: skip
        sessions: FetchSessions[Hosted, Ask] = FetchSessions(
            settings.number("max.incremental.fetch.session.cache.slots"), random
        )
        self.fetches = FetchDriver(
            self.partitions, clock, sessions, max_bytes=settings.number("fetch.max.bytes"), by_rack=by_rack
        )
        settings.on_change(self._limits_changed)
        self.produces = ProduceDriver(self.partitions, clock, ports.offload)
        self.upkeep = UpkeepDriver(
            settings, self.partitions, self.store, self.flushes, self.checkpoints, clock, ports.files, ports.offload
        )
        self.strays = StrayDriver(settings, self.store, clock, ports.offload, image=lambda: metadata.image)
        self.upkeep.also("strays", lambda: settings.number("log.retention.check.interval.ms"), self.strays.look)
        self.upkeep.also("quotas", lambda: QUOTAS_SWEPT_MS, self.quotas.sweep)
        self.compaction = CompactionDriver(settings, self.partitions, self.checkpoints, clock, ports.offload)
        self.isr = IsrDriver(
            node_id, broker_epoch, ask, clock, self.partitions,
            lag_time_max_ms=settings.number("replica.lag.time.max.ms"),
        )  # fmt: skip
        settings.on_change(self.directories.cordons_changed)
        self.relocations = RelocationDriver(
            self.partitions, self.store, self.checkpoints, clock, ports.offload,
            bytes_per_second=partial(neighbours.throttled_rate, RELOCATION_RATE),
            cleaning=lambda: self.compaction.cleaning,
            on_moved=self.assignments.check,
        )  # fmt: skip
        groups = GroupKind(settings, random)
        make_topic = TopicMaker(settings, ask, groups.name, lambda: len(metadata.image.brokers)).make
        self.groups = Runtime(groups, node_id, self.partitions, clock, make_topic=make_topic)
        self.produces.markers.tell(OFFSETS_TOPIC, self.groups.marked)
        producer_ids = ProducerIds(node_id, broker_epoch, ask)
        self.transactions = Transactions(
            settings, node_id, self.partitions, clock, self.peers,
            make_topic=TopicMaker(settings, ask, TransactionKind.name, lambda: len(metadata.image.brokers)).make,
            next_producer_id=producer_ids.take_now,
            write_markers=self.produces.markers.write,
        )  # fmt: skip
        self.produces.transactions = self.groups.transactions = ProducedTransactions(settings, clock, self.transactions)
        self.coordinators: list[CoordinatorPart] = [self.groups, self.transactions]
        self.dispatch = Dispatch(unstable=settings.flag("unstable.api.versions.enable"))
        self.services = Services(
            settings=settings, clock=clock, authorizer=authorizer, metadata=metadata,
            controller=control.forwarding,
            partitions=self.partitions, produces=self.produces, fetches=self.fetches, logs=self.store,
            producer_ids=producer_ids,
            quorum=control.quorum, apis=self.dispatch, features=control.features,
            groups=self.groups, transactions=self.transactions, relocations=self.relocations, audit=audit,
        )  # fmt: skip

    async def _at_rest(self, target: Log) -> None:
        """Returns when nobody works any more in the directory of a log that goes."""
        await self.compaction.at_rest(target)
        await self.flushes.at_rest(target)

    def _log_settings(self, name: TopicPartition) -> TopicSettings:
        return self._settings.topic(self._control.metadata.image.config(CONFIG_TOPIC, name.topic))

    def _limits_changed(self) -> None:
        self.fetches.max_bytes = self._settings.number("fetch.max.bytes")

    # -- coming up

    async def start(self, advertised: list[Endpoint], own_host: str) -> None:
        """Opens the logs, registers, lets partitions take their roles; returns when clients may be let in.

        The image has to be up to date before: a leadership of the past must not be taken up.
        """
        load(self._authorizer, self._control.metadata.image)
        await self._open_logs()
        await self.lifecycle.register(
            advertised,
            own_host,
            self.directories.online(),
            previous_epoch=self.store.clean_broker_epoch,
            cordoned=self.directories.cordoned() or None,
        )
        self.strays.set_aside()
        self.checkpoints.begin()
        metadata = self._control.metadata
        metadata.on_publish(self.partitions.publish)
        for coordinator in self.coordinators:
            metadata.on_publish(coordinator.follow)
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
        slices = Slices(self._clock)
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
            if slices.over:
                await slices.breathe()
        await self.checkpoints.over()

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
        for coordinator in self.coordinators:
            coordinator.close()
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
        longest_ms = partial(self._settings.number, "transaction.max.timeout.ms")
        metrics.register("producers", lambda: producer_samples(self.partitions, self._clock, longest_ms))
        watch = FollowerWatch(self._clock, self.partitions.neighbours)
        metrics.register("replication", lambda: replication_samples(self.partitions, self.isr, watch))
        metrics.register("following", lambda: following_samples(self.followers, self.fetches))
        metrics.register("traffic", lambda: traffic_samples(self.partitions, self.produces, self.fetches))
        metrics.register("directories", lambda: directory_samples(self.store))
        metrics.register("upkeep", lambda: upkeep_samples(self.flushes, self.upkeep, self.compaction))
        metrics.register("quotas", lambda: quota_samples(self.quotas.clients, self._clock.monotonic_ms()))
        metrics.register("groups", lambda: group_samples(self.groups))
        metrics.register("transactions", lambda: transaction_samples(self.transactions))
        metrics.register("verification", lambda: verification_samples(self.transactions.verifier))
        ends = LogEnds(self.partitions, self.peers, self._clock)
        metrics.register("lags", lambda: lag_samples(self.groups, ends), lambda: ask_ends(self.groups, ends))

    def ailments(self) -> list[str]:
        return [
            f"log directory {directory.path} is offline: {directory.why_offline}"
            for directory in self.store.directories
            if not directory.online
        ]
