"""The metadata side of a node: its copy of the metadata log, its place in the quorum, and the way to the controller.

Every node has it. One with the controller role is a voter (or may become one), has a controller that decides while it
leads, and serves a listener of its own to the other nodes; the others only follow the log. The registration and the
heartbeats of a broker belong here too.

All of it lives on a loop that waits for no disk, which may be another than the broker's. The broker reaches it through
`control_door.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

from penstock.model.errors import Corrupt, PenstockError, Refused
from penstock.model.ids import new_uuid
from penstock.quorum.state import ReplicaKey
from penstock.quorum.voters import Voter, VoterEndpoint
from penstock.server.controller.channel import ControllerChannel
from penstock.server.controller.forwarding import Forwarding
from penstock.server.controller.lifecycle import BrokerLifecycle
from penstock.server.dialling import towards_controllers
from penstock.server.doors import Services
from penstock.server.formatting import METADATA_DIRECTORY
from penstock.server.metrics.control_metrics import QuorumSamples, controller_samples
from penstock.server.parts.ending import cancel_now
from penstock.server.peers import NetPeers
from penstock.server.quorum.driver import QuorumDriver
from penstock.server.quorum.metadata_driver import MetadataDriver, MetadataMirror
from penstock.server.quorum.metadata_features import Features
from penstock.server.quorum.metadata_feed import MetadataFeed
from penstock.server.quorum.snapshot_driver import SnapshotDriver, SnapshotSettings
from penstock.server.quorum.snapshot_file import BOOTSTRAP_CHECKPOINT, read_checkpoint
from penstock.server.reception.authorize import follow, load
from penstock.server.reception.dispatch import CONTROLLER_SERVED, Dispatch
from penstock.storage.log_directory import locked

if TYPE_CHECKING:
    from random import Random

    from penstock.metadata.records import Record
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import File, Files, Ports
    from penstock.protocol.wire import Message
    from penstock.server.controller.driver import ControllerDriver
    from penstock.server.controller.enrolment import ControllerEnrolment
    from penstock.server.doors import AuditDoor, Authorizer
    from penstock.server.live_settings import LiveSettings
    from penstock.server.loops.crossing import Sides
    from penstock.server.metrics.page import Metrics
    from penstock.server.parts.identity import Identity

log = logging.getLogger("penstock.node")

HEARTBEAT_PURPOSE: Final = "heartbeat"
LOOK_MS: Final = 20.0
REMIND_MS: Final = 10_000.0
FETCH_TIMEOUTS: Final = 3
IDLE_INTERVALS: Final = 8
"""How long metadata may stand still before the node is not ready: longer than an election, or a moment of stall."""


class ControlPart:
    """`settings` are live ones; `bound` has the ports that are really listened on."""

    def __init__(
        self,
        settings: LiveSettings,
        bound: BrokerSettings,
        ports: Ports,
        random: Random,
        identity: Identity,
        authorizer: Authorizer,
        on_fatal: Callable[[Exception], None],
        sides: Sides,
        on_stale: Callable[[str], None],
        audit: AuditDoor | None = None,
    ) -> None:
        """`on_stale` is told why when this process is no broker of the cluster any more."""
        self._clock, self._files, self._settings = ports.clock, ports.files, settings
        self._lock: File | None = None
        own_host = ports.net.host_name()
        self.metadata = MetadataDriver(settings.node_id, identity.cluster_id)
        self.metadata.on_publish(settings.follow)
        self._authorizer = authorizer
        follow(authorizer, self.metadata)
        self._moved_ms = ports.clock.monotonic_ms()
        self.metadata.on_advance(self._moved)
        self.peers = NetPeers(
            ports.net, ports.clock,
            client_id=f"penstock-{settings.node_id}",
            dial_first_ms=settings.number("socket.connection.setup.timeout.ms"),
            dial_max_ms=settings.number("socket.connection.setup.timeout.max.ms"),
            security=towards_controllers(settings, ports.offload),
        )  # fmt: skip
        endpoints = bound.advertised_controller_listeners if settings.is_controller else ()
        me = Voter(
            ReplicaKey(settings.node_id, identity.directory_id),
            tuple(VoterEndpoint(each.name, each.host or own_host, each.port) for each in endpoints),
        )
        self.quorum = QuorumDriver(
            ports.files, ports.offload, ports.clock, random,
            f"{settings.metadata_log_dir}/{METADATA_DIRECTORY}", me, settings, self.metadata,
            peers=self.peers, is_controller=settings.is_controller, on_fatal=on_fatal,
        )  # fmt: skip
        self.snapshots = SnapshotDriver(
            ports.files, ports.offload, ports.clock, self.metadata, self.quorum, _snapshot_settings(settings), on_fatal
        )
        self.features = Features(self.metadata, lambda: self.quorum.kraft_version)
        self.controller: ControllerDriver | None = None
        self.enrolment: ControllerEnrolment | None = None
        self.dispatch: Dispatch | None = None
        if settings.is_controller:
            self.controller = self._controller(ports, random, identity.cluster_id, on_fatal)
            self.quorum.attach(lead=self.controller.lead, resign=self.controller.resign)
        self.channel = ControllerChannel(
            self.quorum,
            self.controller,
            self.peers,
            ports.clock,
            request_timeout_ms=settings.number("request.timeout.ms"),
            answer_timeout_ms=settings.number("controller.socket.timeout.ms"),
        )
        self.forwarding = Forwarding(self.channel, self.quorum, self.controller, self.peers)
        self.mirror: MetadataMirror | None = None
        self.feed: MetadataFeed | None = None
        self.lifecycle: BrokerLifecycle | None = None
        if settings.is_broker:
            mirror = self.mirror = MetadataMirror(settings.node_id, identity.cluster_id)
            self.feed = self.metadata.feed = MetadataFeed(sides, mirror, lambda: self.metadata.image)
            self.lifecycle = self._lifecycle(self.feed, random, identity.cluster_id, on_stale)
        if self.controller is not None:
            self.enrolment = self._enrolment(bound, random, own_host)
            self.metadata.on_publish(self.enrolment.follow)
            self.dispatch = Dispatch(CONTROLLER_SERVED, unstable=settings.flag("unstable.api.versions.enable"))
            self.services = self._services(self.controller, self.dispatch, authorizer, audit)

    def _lifecycle(
        self, feed: MetadataFeed, random: Random, cluster_id: str, on_stale: Callable[[str], None]
    ) -> BrokerLifecycle:
        settings = self._settings
        lifecycle = BrokerLifecycle(
            settings.node_id, cluster_id, new_uuid(random), self.metadata, self._report,
            heartbeat_interval_ms=settings.number("broker.heartbeat.interval.ms"),
            registration_timeout_ms=settings.number("initial.broker.registration.timeout.ms"),
            rack=settings.rack, on_stale=on_stale, acted_on=lambda: feed.taken,
        )  # fmt: skip
        self.peers.on_lost = self._link_lost
        self.quorum.when_leader_changes(lifecycle.hurry)
        return lifecycle

    async def _report(self, request: Message, version: int) -> Message:
        """Heartbeats have a link of their own, and are not worth more time than the session that they keep alive."""
        session_ms = self._settings.number("broker.session.timeout.ms")
        return await self.channel.ask(request, version, timeout_ms=session_ms / 2, purpose=HEARTBEAT_PURPOSE)

    def _link_lost(self, purpose: str) -> None:
        if purpose == HEARTBEAT_PURPOSE and self.lifecycle is not None:
            # The controller cannot tell a broken link from a dead process, and does not wait long.
            self.lifecycle.hurry()

    def _controller(
        self, ports: Ports, random: Random, cluster_id: str, on_fatal: Callable[[Exception], None]
    ) -> ControllerDriver:
        from penstock.controller.decision import ControllerSettings
        from penstock.security.quotas.clients import ClientQuotas
        from penstock.server.controller.driver import ControllerDriver, ControllerTimes

        settings = self._settings
        number = settings.number
        quotas = ClientQuotas(
            number("controller.quota.window.size.seconds") * 1_000, number("controller.quota.window.num")
        )
        self.metadata.on_publish(quotas.follow)
        return ControllerDriver(
            self.quorum, self.metadata, ports.clock, random, ControllerSettings.of(settings, cluster_id),
            ControllerTimes.of(settings), bootstrap=lambda: _bootstrap_records(ports.files, settings.metadata_log_dir),
            on_fatal=on_fatal, quotas=quotas,
        )  # fmt: skip

    def _enrolment(self, bound: BrokerSettings, random: Random, own_host: str) -> ControllerEnrolment:
        from penstock.server.controller.enrolment import ControllerEnrolment

        endpoints = bound.advertised_controller_listeners
        return ControllerEnrolment(self._settings.node_id, new_uuid(random), self.channel.ask, endpoints, own_host)

    def _services(
        self, controller: ControllerDriver, dispatch: Dispatch, authorizer: Authorizer, audit: AuditDoor | None
    ) -> Services:
        """What handlers see on the controllers' listener: nothing of a broker, and no way to another controller."""
        absent = _Absent()
        return Services(
            settings=self._settings, clock=self._clock, authorizer=authorizer, metadata=self.metadata,
            controller=controller, partitions=absent, produces=absent, fetches=absent, logs=absent,
            producer_ids=absent, quorum=self.quorum, apis=dispatch, features=self.features,
            groups=absent, transactions=absent, relocations=absent, audit=audit,
        )  # fmt: skip

    # -- life

    def start(self) -> None:
        """Reads the metadata log and takes part in the quorum; a quorum of one leads when this returns."""
        self._lock = locked(self._files, self._settings.metadata_log_dir)
        self.quorum.start()
        self.snapshots.found(self.quorum.snapshots)

    def unlock(self) -> None:
        """Lets go of the metadata directory: a broker is about to lock it with its other directories."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def obstacle(self) -> str | None:
        """What keeps a starting node from knowing the cluster as it is; None when nothing does."""
        high_watermark = self.quorum.high_watermark
        if not self.quorum.leading and self.quorum.leader_address is None:
            return "waiting for the metadata quorum: no leader is known"
        if high_watermark is None:
            return "waiting for the metadata quorum: nothing is committed by its leader yet"
        if self.metadata.published_end < high_watermark:
            return f"catching up with the metadata log: {self.metadata.published_end} of {high_watermark}"
        return None

    def standstill(self) -> str | None:
        """Why a node that was well may know the cluster only as it was; None while what it knows goes on.

        The active controller writes something now and then, however idle the cluster is, unless it is told not to.
        """
        idle_ms = self._settings.number("metadata.max.idle.interval.ms")
        fetch_timeout_ms = self._settings.number("controller.quorum.fetch.timeout.ms")
        still_ms = self._clock.monotonic_ms() - self._moved_ms
        if still_ms < max(FETCH_TIMEOUTS * fetch_timeout_ms, IDLE_INTERVALS * idle_ms):
            return None
        voters = ", ".join(map(str, sorted(self.quorum.voters.ids)))
        if self.quorum.leading:
            why = f"this node leads the metadata quorum, but no majority of its voters ({voters}) follows"
        elif not self.quorum.following:
            why = f"this node finds no leader of the metadata quorum: does a majority of its voters ({voters}) run?"
        elif idle_ms > 0:
            why = f"node {self.quorum.leader} leads the metadata quorum, but nothing new of its log comes here"
        else:
            return None
        return f"the cluster's metadata stands still for {still_ms / 1_000:.0f} s: {why}"

    def _moved(self) -> None:
        self._moved_ms = self._clock.monotonic_ms()

    async def caught_up(self) -> None:
        """Returns when the published image shows what is committed; waits for the quorum as long as it takes.

        So does the broker's own then. One who leads has to commit what it found in its log first: until then it does
        not know how much of it counts.
        """
        await self._knows_the_cluster()
        load(self._authorizer, self.metadata.image)
        if self.feed is not None:
            await self.feed.level()

    async def _knows_the_cluster(self) -> None:
        remind_at = self._clock.monotonic_ms() + REMIND_MS
        while True:
            if self.quorum.leading:
                if await self._all_published():
                    return
            elif self.obstacle() is None:
                return
            now = self._clock.monotonic_ms()
            if now >= remind_at:
                remind_at = now + REMIND_MS
                voters = self._settings.quorum_bootstrap_servers or [each[1:] for each in self._settings.quorum_voters]
                log.warning("%s; the controllers are %s", self.obstacle(), ", ".join(f"{h}:{p}" for h, p in voters))
            await asyncio.sleep(LOOK_MS / 1_000)

    async def _all_published(self) -> bool:
        try:
            async with asyncio.timeout(REMIND_MS / 1_000):
                await self.metadata.published(self.quorum.end)
        except (TimeoutError, Refused):
            return False  # there is no majority, or it leads no more
        return True

    def measure(self, metrics: Metrics) -> None:
        metrics.register("quorum", QuorumSamples(self.quorum, self.metadata, self.peers, self._clock).samples)
        controller = self.controller
        if controller is not None:
            metrics.register("controller", lambda: controller_samples(self.quorum, self.metadata, controller))

    async def close(self) -> None:
        """Hands the quorum over and lets go of the log. The listener for controllers is still served meanwhile."""
        if self.lifecycle is not None:
            await self.lifecycle.fall_silent()
        if self.enrolment is not None:
            await self.enrolment.close()
        self.channel.close()
        await self.snapshots.close()
        await self.quorum.close()
        self.peers.close()
        self.unlock()

    def crash(self) -> None:
        self.channel.close()
        if self.lifecycle is not None:
            cancel_now(self.lifecycle.fall_silent())
        if self.controller is not None:
            self.controller.resign()
        if self.enrolment is not None:
            cancel_now(self.enrolment.close())
        cancel_now(self.snapshots.close())
        self.quorum.crash()
        self.peers.close()
        self.unlock()


class _Absent:
    """Stands where a controller has no such part; nothing that its listener serves asks for it."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"a controller has no broker's part to ask for {name}")


def _bootstrap_records(files: Files, directory: str) -> list[Record]:
    """What a new cluster starts from, as the directory was formatted; nothing means this release's own levels."""
    path = f"{directory}/{BOOTSTRAP_CHECKPOINT}"
    if not files.exists(path):
        return []
    try:
        return read_checkpoint(path, files.read(path)).records
    except (PenstockError, ValueError, OSError) as broken:
        why = broken.why if isinstance(broken, Corrupt) else broken
        raise PenstockError(
            f"a new cluster starts from {path}, and it cannot be read ({why}); format the directory again, "
            "or remove this file to start with the feature levels of this release"
        ) from broken


def _snapshot_settings(settings: BrokerSettings) -> SnapshotSettings:
    return SnapshotSettings(
        max_bytes_between=settings.number("metadata.log.max.record.bytes.between.snapshots"),
        max_interval_ms=settings.number("metadata.log.max.snapshot.interval.ms"),
        retention_bytes=settings.number("metadata.max.retention.bytes"),
        retention_ms=settings.number("metadata.max.retention.ms"),
    )
