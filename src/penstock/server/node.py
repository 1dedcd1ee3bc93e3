"""The composition root: one node of a cluster, brought up in order and taken down in order.

`parts/` build what a node is made of: the metadata side that every node has and the broker that some have. This module
knows who comes when. The order of a start: addresses are bound (nobody is accepted yet), the metadata log is read and
other controllers are let in, the node waits for a leader of the quorum and catches up with the log, the broker's logs
are opened, it registers, partitions take their roles, it is unfenced, and only then are clients let in.

The order of a stop is the other way round. A broker hands over what it leads while it still serves, so that clients
learn their new leaders from it; the place in the quorum goes last, because the handing over needs it.

The metadata side may have a loop of its own (`crossing.py`): what is done to it is done there. This object lives on the
loop of the broker.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from penstock.model.errors import PenstockError, Refused, StorageFailed
from penstock.server.formatting import METADATA_DIRECTORY, format_for
from penstock.server.live_settings import LiveSettings
from penstock.server.logs import Sparing
from penstock.server.loops.crossing import SharedQuarters
from penstock.server.loops.duty import duty
from penstock.server.loops.hang_watch import HangWatch
from penstock.server.loops.loop_watch import LoopWatch, Processor
from penstock.server.metrics.admin_metrics import admin_samples
from penstock.server.metrics.audit_metrics import audit_samples
from penstock.server.metrics.control_metrics import broker_info
from penstock.server.metrics.http_admin import AdminServer, gathered
from penstock.server.metrics.page import (
    Metrics,
    connection_samples,
    control_loop_samples,
    loop_samples,
    request_samples,
)
from penstock.server.metrics.process_metrics import ProcessWatch
from penstock.server.metrics.tls_metrics import tls_samples
from penstock.server.parts.admin import STRANGERS_MAX, admin_logins, admin_tls, guard_of
from penstock.server.parts.control import ControlPart
from penstock.server.parts.identity import bound_settings, read_identity
from penstock.server.reception.authorize import AclAuthorizer, authorizer_of
from penstock.server.reception.listener import Listeners
from penstock.server.reception.reception import Reception
from penstock.server.reception.security import check_security
from penstock.server.reception.store_changes import StoreChanges
from penstock.server.reception.strangers import Strangers
from penstock.server.securing import ADMIN

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.metadata.image import ClusterImage
    from penstock.model.config import BrokerSettings, Endpoint
    from penstock.model.ids import Uuid
    from penstock.model.ports import Clock, Ports
    from penstock.server.auditing.outlet import Line, Outlet
    from penstock.server.auditing.stream import Audit
    from penstock.server.auditing.topic import AuditTopic, Produces
    from penstock.server.controller.channel import Ask
    from penstock.server.doors import Authorizer, Handler, Services
    from penstock.server.loops.crossing import Quarters
    from penstock.server.metrics.admin_guard import AdminGuard
    from penstock.server.metrics.page import Families
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.parts.broker import BrokerPart
    from penstock.server.parts.identity import Identity
    from penstock.server.quorum.driver import QuorumDriver
    from penstock.server.reception.tls_door import TlsDoor

log = logging.getLogger("penstock.node")

DRAIN_MS = 2_000.0
AILING_MS = 3_000.0
AUDIT_TOPIC_ENABLED = "penstock.audit.topic.enable"
HANG_TIMEOUT = "penstock.log.dir.hang.timeout.ms"
ADMIN_PORT_TAKEN = (
    "Servers that share a host need an admin port each: give this one another in its file, or to `penstock dev` with "
    "-c penstock.admin.listener=HOST:PORT; an empty one serves no metrics and health"
)


class StoppedEarly(PenstockError):
    """The node was told to stop before it was ready."""


class Node:
    """A broker, a controller, or both in one process. `start` once, `stop` or `crash` once."""

    def __init__(
        self,
        settings: BrokerSettings,
        ports: Ports,
        *,
        random: Random,
        formats_itself: bool,
        authorizer: Authorizer | None = None,
        quarters: Quarters | None = None,
    ) -> None:
        """`quarters` are where the metadata side lives; without them it shares the loop of the rest.

        `authorizer` stands in for the one that the settings ask for, on both sides of the node.
        """
        self.settings = LiveSettings(settings)
        self._ports, self._random, self._formats_itself = ports, random, formats_itself
        self._quarters = quarters or SharedQuarters(ports, random)
        self._sides = self._quarters.sides
        self._stand_in = authorizer
        self._listeners = Listeners(settings)
        self._admin_tls, self._admin_logins = admin_tls(settings), admin_logins(settings)
        for name in check_security(settings):
            log.warning("%s has no effect: no listener of this node that it holds for has TLS or logins", name)
        self._control: ControlPart | None = None
        self._broker: BrokerPart | None = None
        self._reception: Reception | None = None
        self._controllers: Reception | None = None
        self._audited: list[Audit | None] = [None, None]  # of the broker, of the metadata side
        self._audit_topic: AuditTopic | None = None
        self._to_audit_topic: list[Outlet] = []
        self._admin: AdminServer | None = None
        self._admin_guard: AdminGuard | None = None
        self._control_watch: LoopWatch | None = None
        self._hangs: HangWatch | None = None
        self._hanging: set[Uuid] = set()
        self._coming_up: asyncio.Task[None] | None = None
        self._stopping = self._crashed = False
        self._progress = "starting"
        self.ending = "beginning to stop"
        """What a stop is about, for whoever has waited too long for it."""
        self.processor: Callable[[], Processor] | None = None
        """Set before the start where threads are the machine's, and not simulated: the account of whichever asks."""
        self.on_doom: Callable[[str], None] = lambda _why: None
        """Told, in any thread, that this node cannot go on: whoever runs it may be unable to hear of it otherwise."""
        self._failure: str | None = None
        self._failed = asyncio.Event()
        self.ready = False

    # -- who it is

    @property
    def port(self) -> int:
        """The port of the first listener for clients, or for controllers when there is none."""
        return self._reached_at()[0].port

    @property
    def admin_port(self) -> int:
        """Where metrics are; 0 when they are not served."""
        return self._admin.port if self._admin is not None else 0

    @property
    def admin_url(self) -> str:
        """The admin port on this machine, without a path."""
        return f"{'http' if self._admin_tls is None else 'https'}://127.0.0.1:{self.admin_port}"

    @property
    def addresses(self) -> list[str]:
        return [f"{each.host}:{each.port}" for each in self._reached_at()]

    def _reached_at(self) -> list[Endpoint]:
        """Where clients reach this node, or other nodes when it serves no clients."""
        clients = self._listeners.advertised(self._ports.net.host_name())
        return clients or [each.endpoint._replace(port=each.info.port) for each in self._listeners]

    @property
    def control(self) -> ControlPart:
        assert self._control is not None, "a node is started before it is asked"
        return self._control

    @property
    def broker(self) -> BrokerPart:
        assert self._broker is not None, "only a node with the role of a broker has one, and once it is started"
        return self._broker

    @property
    def quorum(self) -> QuorumDriver:
        return self.control.quorum

    @property
    def partitions(self) -> PartitionDriver:
        return self.broker.partitions

    @property
    def services(self) -> Services:
        """What handlers of the first kind of listener see; for tests and the simulator."""
        return self.control.services if self._broker is None else self._broker.services

    # -- coming up

    async def start(self) -> None:
        """Returns when the node serves; waits for the rest of the cluster as long as it takes.

        `StoppedEarly` when `stop` was called meanwhile. After any other error nothing of the node is left running.
        """
        self._coming_up = asyncio.get_running_loop().create_task(self._come_up(), name="start")
        try:
            await self._coming_up
        except asyncio.CancelledError:
            if self._stopping or self._crashed:
                raise StoppedEarly("the node was stopped before it was ready") from None
            self.crash()
            raise
        except BaseException:
            self.crash()
            raise

    async def _come_up(self) -> None:
        there = self._sides.control
        await self._listeners.open(self._ports.net, for_controllers=False)
        await there.call(self._listeners.open, self._quarters.ports.net, for_controllers=True)
        await self._build()
        control = self.control
        await there.ask(control.start)
        await there.call(self._open_admin)
        if self._controllers is not None:
            await there.call(self._listeners.serve, self._controllers, for_controllers=True)
        await there.call(control.caught_up)
        if self._broker is not None:
            self._progress = "joining the cluster: logs are opened, the broker registers and waits to be unfenced"
            own_host = self._ports.net.host_name()
            await self._broker.start(self._listeners.advertised(own_host), own_host)
            assert self._reception is not None, "a broker has a reception"
            await self._listeners.serve(self._reception, for_controllers=False)
            self._broker.start_upkeep()
        self._watch.start()
        self._process.start()
        if self._control_watch is not None:
            await there.ask(self._control_watch.start)
        if self._hangs is not None:
            await there.ask(self._hangs.start)
        self.ready = True

    async def _build(self) -> None:
        loop, settings, ports = asyncio.get_running_loop(), self.settings, self._ports
        self._watch, self._process = LoopWatch(loop, self._account()), ProcessWatch()
        bound = bound_settings(settings, self._listeners)
        if self._formats_itself:
            format_for(bound, files=ports.files, clock=ports.clock, random=self._random, own_host=ports.net.host_name())
        identity = read_identity(ports.files, settings, self._random)
        await self._sides.control.call(self._build_control, bound, identity)
        if settings.is_broker:
            from penstock.server.parts.broker import BrokerPart
            from penstock.server.parts.control_door import ControlDoor

            door = ControlDoor(self.control, self._sides.control)
            authorizer = self._authorizer(ports.clock)
            audit = self._audited[0] = self._audit(authorizer, ports.clock)
            if audit is not None:
                await audit.open()
            self._broker = BrokerPart(
                settings, ports, self._random, door, identity.cluster_id, authorizer, self.give_up, audit
            )
            if audit is not None and settings.flag(AUDIT_TOPIC_ENABLED):
                broker = self._broker
                self._tell_topic(audit, ports, lambda: door.metadata.image, door.ask, broker.produces)
            self._reception = Reception(
                loop, self._broker.services, self._broker.dispatch, numbers=count(1, 2), offload=ports.offload
            )
            self._broker.services.stores = StoreChanges(settings.static, self._listeners, self._sides.control)
            settings.on_change(partial(self._listeners.settings_changed, for_controllers=False))
            door.metadata.on_publish(self._reception.follow)
            self._broker.quotas.on_switch(self._reception.charge_by)
        await self._sides.control.ask(self._build_admin)

    def _authorizer(self, clock: Clock) -> Authorizer:
        """One for each side: it follows the image of that side, on its loop."""
        return self._stand_in or authorizer_of(self.settings.static, clock.monotonic_ms)

    def _account(self) -> Processor | None:
        """That of the thread which calls."""
        return None if self.processor is None else self.processor()

    def _audit(self, authorizer: Authorizer, clock: Clock) -> Audit | None:
        """The audit stream of one side; None unless a file or the topic is asked for."""
        path, told = self.settings.text("penstock.audit.log.file"), self.settings.flag("penstock.audit.allowed")
        if not path and not self.settings.flag(AUDIT_TOPIC_ENABLED):
            if told:
                log.warning(
                    "penstock.audit.allowed has no effect without penstock.audit.log.file or %s", AUDIT_TOPIC_ENABLED
                )
            return None
        from penstock.server.auditing.file import AuditFile
        from penstock.server.auditing.stream import Audit

        explain = authorizer.explain if isinstance(authorizer, AclAuthorizer) else None
        file = AuditFile(path) if path else None
        return Audit(self.settings.node_id, clock, file, explain, tells_allowed=told)

    def _tell_topic(
        self, audit: Audit, ports: Ports, image: Callable[[], ClusterImage], ask: Ask, produces: Produces | None
    ) -> None:
        """On the loop of the broker, or of the metadata side where there is none."""
        from penstock.server.auditing.topic import AuditTopic

        self._audit_topic = AuditTopic(self.settings, ports, image, ask, produces)
        audit.also_to(self._audit_topic.outlet)
        self._to_audit_topic.append(self._audit_topic.outlet)

    def _tell_topic_across(self, audit: Audit) -> None:
        """What the metadata side of a broker has to tell is written by the broker."""
        from penstock.server.auditing.outlet import Lost, Outlet

        async def hand_over(lines: list[Line]) -> None:
            assert self._audit_topic is not None, "listeners are served when the whole node is built"
            try:
                await self._sides.data.ask(self._audit_topic.outlet.put_all, lines)
            except Refused as stopping:
                raise Lost(stopping.why) from stopping

        outlet = Outlet("the broker of this node", hand_over, audit.sparing)
        audit.also_to(outlet)
        self._to_audit_topic.append(outlet)

    async def _build_control(self, bound: BrokerSettings, identity: Identity) -> None:
        """On its own loop."""
        quarters = self._quarters
        authorizer = self._authorizer(quarters.ports.clock)
        audit = self._audited[1] = self._audit(authorizer, quarters.ports.clock)
        if audit is not None:
            await audit.open()
        # Dynamic settings are followed by each side with its own image.
        settings = self._control_settings = LiveSettings(self.settings.static)
        control = self._control = ControlPart(
            settings, bound, quarters.ports, quarters.random, identity, authorizer,
            self._fatal, self._sides, on_stale=self.doomed, audit=audit,
        )  # fmt: skip
        if audit is not None and settings.flag(AUDIT_TOPIC_ENABLED):
            if settings.is_broker:
                self._tell_topic_across(audit)
            else:
                self._tell_topic(audit, quarters.ports, lambda: control.metadata.image, control.channel.ask, None)
        if control.dispatch is not None:
            self._controllers = Reception(
                quarters.loop(), control.services, control.dispatch, numbers=count(2, 2), offload=quarters.ports.offload
            )
            settings.on_change(partial(self._listeners.settings_changed, for_controllers=True))
            control.metadata.on_publish(self._controllers.follow)
        if quarters.loop() is not self._watch.loop:
            self._control_watch = LoopWatch(quarters.loop(), self._account(), name="the control loop")
        self._hangs = HangWatch(
            quarters.ports.clock, self._sides, lambda: settings.number(HANG_TIMEOUT),
            list({id(each): each for each in (self._ports.offload, quarters.ports.offload)}.values()),
            quarters.held_at, on_hang=self._disk_hangs, on_held=self._held,
        )  # fmt: skip

    # -- disks that hang, seen from the loop of the metadata side

    def _disk_hangs(self, path: str, for_ms: float) -> None:
        why = f"a call to {path} has not come back for {for_ms / 1_000:.0f} s"
        if _holds(f"{self.settings.metadata_log_dir}/{METADATA_DIRECTORY}", path):
            self.doomed(f"the metadata log cannot be written: {why}")
        elif self._broker is not None:
            self._sides.data.tell(self._broker.partitions.storage_failed, StorageFailed(path, why))

    def _held(self, path: str | None, for_ms: float) -> None:
        """The broker's loop gives no sign of life. What it serves of other directories waits, but not for long."""
        control, where = self.control, f"in a call to {path}" if path is not None else "in nothing that is a file"
        why = f"the loop that serves clients is held for {for_ms / 1_000:.0f} s {where}"
        lost = self._broker.directory_of(path) if self._broker is not None and path is not None else None
        alone = self._broker is None or len(self._broker.directories.online()) < 2
        if self._broker is None or lost is None or alone or lost in self._hanging:
            self.doomed(why)
            return
        self._hanging.add(lost)
        log.error("%s; its directory counts as failed", why)
        assert path is not None, "it has a directory"
        self._sides.data.tell(self._broker.partitions.storage_failed, StorageFailed(path, why))
        if control.lifecycle is not None:
            duty(control.lifecycle.report_failed(lost), name="report on a directory that hangs")

    def _build_admin(self) -> None:
        """On the loop of the metadata side, so that it answers also when the broker's is held."""
        apart, clock = self._control_watch is not None, self._quarters.ports.clock
        sparing = Sparing(log, clock=clock.monotonic_ms)
        if self._admin_logins is not None:
            delay_ms = self.settings.number("connection.failed.authentication.delay.ms")
            audit = self._audited[1]
            told = None if audit is None else audit.login_failed
            self._admin_guard = guard_of(self._admin_logins, delay_ms, clock, sparing, told)
        if self._admin_tls is not None:
            self._admin_tls.open(
                self._quarters.loop(), clock, self._quarters.ports.offload, self._control_settings,
                Strangers(STRANGERS_MAX, STRANGERS_MAX), sparing,
            )  # fmt: skip
            self._control_settings.on_change(self._admin_tls.settings_changed)
        self._admin = AdminServer(
            self._quarters.loop(), self._metrics(broker=not apart), health=self._ailments, readiness=self._obstacles,
            others=self._broker_numbers if apart else None, guard=self._admin_guard, tls=self._admin_tls,
        )  # fmt: skip

    async def _broker_numbers(self) -> Families:
        families: Families = await self._sides.data.call(gathered, self._metrics(control=False))
        return families

    async def _open_admin(self) -> None:
        host, _, port = self.settings.text("penstock.admin.listener").rpartition(":")
        if port and self._admin is not None:
            try:
                await self._admin.open(self._quarters.ports.net, host, int(port))
            except OSError as cause:
                raise OSError(cause.errno, f"{cause.strerror} (penstock.admin.listener). {ADMIN_PORT_TAKEN}") from cause

    # -- going down

    async def stop(self) -> None:
        """Hands over, answers what runs, flushes and leaves the marks that spare the next start a scan."""
        if self._stopping or self._crashed:
            return
        self._stopping, self.ready = True, False
        log.info("stopping")
        if self._coming_up is not None and not self._coming_up.done():
            self.ending = f"giving up its start ({self._progress})"
            self._coming_up.cancel()
            await asyncio.wait((self._coming_up,))
        if self._control is not None:
            await self._take_down(self._control)
        self._listeners.stop_accepting(for_controllers=False)
        await self._sides.control.ask(self._listeners.stop_accepting, for_controllers=True)
        self.ending = "waiting for calls to the disk that were begun"
        self._close_ports()
        log.info("stopped")

    def _close_ports(self) -> None:
        self._ports.offload.close()
        if self._quarters.ports.offload is not self._ports.offload:
            self._quarters.ports.offload.close()
        self._quarters.close()

    async def _take_down(self, control: ControlPart) -> None:
        self._watch.stop()
        self._process.stop()
        broker = self._broker
        if broker is not None:
            self.ending = "handing over the partitions that it leads"
            await broker.hand_over()
            log.info("clients are sent elsewhere; answering what still runs")
            self.ending = "answering what still ran"
            self._listeners.stop_accepting(for_controllers=False)
            broker.stop_serving()
            if self._reception is not None:
                await self._reception.close(DRAIN_MS)
            if self._audit_topic is not None:
                self.ending = "writing the last audit events"
                await self._audit_topic.close()
            self.ending = "syncing and closing the logs"
            if self._hangs is not None:
                # All of it may be one breath of a slow disk that has much to sync; a stop has a bound of its own.
                await self._sides.control.ask(self._hangs.stop)
            await broker.close()
            if self._audited[0] is not None:
                await self._audited[0].close()
            log.info("the logs are closed")
        self.ending = "leaving the metadata quorum"
        await self._sides.control.call(self._take_down_control, control)

    async def _take_down_control(self, control: ControlPart) -> None:
        """On its own loop."""
        self._stop_watches()
        if self._audit_topic is not None and self._broker is None:
            await self._audit_topic.close()
        await control.close()
        self._listeners.stop_accepting(for_controllers=True)
        if self._controllers is not None:
            await self._controllers.close(DRAIN_MS)
        if self._audited[1] is not None:
            await self._audited[1].close()
        if self._admin is not None:
            self._admin.close()

    def crash(self) -> None:
        """Ends the node as if its process had been killed: nothing is flushed, handed over or answered.

        Connections are cut and tasks and timers gone when this returns; the disk is free for another life.
        """
        if self._crashed:
            return
        self._crashed, self.ready = True, False
        self._listeners.stop_accepting(for_controllers=False)
        if self._reception is not None:
            self._reception.cut()
        if self._coming_up is not None and self._coming_up is not asyncio.current_task():
            self._coming_up.cancel()
        self._quarters.run(self._crash_control)
        if self._control is not None:
            self._watch.stop()
            self._process.stop()
        if self._broker is not None:
            if self._audit_topic is not None:
                self._audit_topic.abandon()
            self._broker.crash()
        if self._audited[0] is not None:
            self._audited[0].abandon()
        self._close_ports()

    def _stop_watches(self) -> None:
        for watch in (self._control_watch, self._hangs):
            if watch is not None:
                watch.stop()

    def _crash_control(self) -> None:
        """On its own loop."""
        self._listeners.stop_accepting(for_controllers=True)
        if self._controllers is not None:
            self._controllers.cut()
        self._stop_watches()
        if self._audit_topic is not None and self._broker is None:
            self._audit_topic.abandon()
        if self._control is not None:
            self._control.crash()
        if self._audited[1] is not None:
            self._audited[1].abandon()
        if self._admin is not None:
            self._admin.close()

    async def failed(self) -> str:
        """Returns why when this node cannot go on; whoever runs it ends it then."""
        await self._failed.wait()
        assert self._failure is not None, "a failure has a reason"
        return self._failure

    def _fatal(self, why: Exception) -> None:
        self.doomed(f"the metadata quorum has stopped: {why}")

    def doomed(self, why: str) -> None:
        """Somebody on either loop found that this node cannot go on."""
        self.on_doom(why)
        self._sides.data.tell(self.give_up, why)

    def when_uncaught(self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, object]], None]) -> None:
        """Who is told what nobody caught on the loop of the metadata side, in its thread, if it has one of its own."""
        self._quarters.on_uncaught(handler)

    def give_up(self, why: str) -> None:
        """The metadata log, the last log directory or the broker's place is gone, or a part of the node has broken."""
        log.critical("this node cannot go on: %s", why)
        self._failure = self._failure or why
        self.ready = False
        self._failed.set()

    # -- being tested

    def override(self, api: str, wrap: Callable[[Handler], Handler]) -> None:
        """Puts something around the handler of an API."""
        self.broker.dispatch.override(api, wrap)

    def time_moved(self, ms: float) -> None:
        """The clock was moved by hand."""
        self._watch.time_moved(ms)

    # -- being watched

    def _metrics(self, *, control: bool = True, broker: bool = True) -> Metrics:
        """The numbers of one side, or of both."""
        metrics = Metrics()
        if broker:
            if self._broker is not None:
                self._broker.measure(metrics)
                metrics.register("broker", lambda: broker_info(self.settings.node_id, self.addresses[0]))
            metrics.register("loop", lambda: loop_samples(self._watch))
            metrics.register("process", self._process.samples)
        if control:
            self.control.measure(metrics)
            dispatches = [part.dispatch for part in (self._broker, self.control) if part is not None]
            served = [each for each in dispatches if each is not None]
            receptions = [each for each in (self._reception, self._controllers) if each is not None]
            metrics.register("requests", lambda: request_samples(*served))
            metrics.register("connections", lambda: connection_samples(self._listeners, *receptions))
            metrics.register("TLS", lambda: tls_samples(self._tls_doors()))
            if (guard := self._admin_guard) is not None:
                metrics.register("admin", lambda: admin_samples(guard))
            streams = [each for each in self._audited if each is not None]
            metrics.register("audit", lambda: audit_samples(streams, self._to_audit_topic))
            if (watch := self._control_watch) is not None:
                metrics.register("control loop", lambda: control_loop_samples(watch))
        return metrics

    def _tls_doors(self) -> dict[str, TlsDoor]:
        """By the name of the listener; the admin port is one of them."""
        doors = self._listeners.tls_doors()
        return doors if self._admin_tls is None else {**doors, ADMIN: self._admin_tls}

    def _ailments(self) -> list[str]:
        reasons = [] if self._failure is None else [self._failure]
        if self._hangs is not None and self._hangs.held_ms > AILING_MS:
            where = self._quarters.held_at()
            reasons.append(
                f"the loop that serves clients is held for {self._hangs.held_ms / 1_000:.0f} s"
                + (f" in a call to {where}" if where is not None else "")
            )
        if self._broker is not None:
            reasons += self._broker.ailments()
        return reasons

    def _obstacles(self) -> list[str]:
        reasons = [] if self._failure is None else [self._failure]
        if self._stopping:
            reasons.append("the node is stopping")
        elif not self.ready and self._failure is None:
            waiting_for = self._control.obstacle() if self._control is not None else None
            reasons.append(waiting_for or self._progress)
        elif self.ready:
            if (standstill := self.control.standstill()) is not None:
                reasons.append(standstill)
            if self.control.lifecycle is not None and self.control.lifecycle.fenced:
                reasons.append("the controller keeps this broker fenced")
        return reasons


def _holds(directory: str, path: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")
