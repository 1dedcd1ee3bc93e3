"""The composition root: one node of a cluster, brought up in order and taken down in order.

`parts/` build what a node is made of: the metadata side that every node has and the broker that some have. This module
knows who comes when. The order of a start: addresses are bound (nobody is accepted yet), the metadata log is read and
other controllers are let in, the node waits for a leader of the quorum and catches up with the log, the broker's logs
are opened, it registers, partitions take their roles, it is unfenced, and only then are clients let in.

The order of a stop is the other way round. A broker hands over what it leads while it still serves, so that clients
learn their new leaders from it; the place in the quorum goes last, because the handing over needs it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from penstock.model.errors import PenstockError
from penstock.server.authorize import AllowAll
from penstock.server.control_metrics import broker_info
from penstock.server.formatting import format_for
from penstock.server.http_admin import AdminServer
from penstock.server.listener import Listeners
from penstock.server.live_settings import LiveSettings
from penstock.server.loop_watch import LoopWatch, Processor
from penstock.server.metrics import Metrics, connection_samples, loop_samples, request_samples
from penstock.server.parts.control import ControlPart
from penstock.server.parts.identity import bound_settings, read_identity
from penstock.server.process_metrics import ProcessWatch
from penstock.server.reception import Reception
from penstock.server.security import check_security

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.model.config import BrokerSettings, Endpoint
    from penstock.model.ports import Ports
    from penstock.server.context import Authorizer, Handler, Services
    from penstock.server.dispatch import Dispatch
    from penstock.server.drivers.partition_driver import PartitionDriver
    from penstock.server.drivers.quorum_driver import QuorumDriver
    from penstock.server.parts.broker import BrokerPart

log = logging.getLogger("penstock.node")

DRAIN_MS = 2_000.0
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
    ) -> None:
        self.settings = LiveSettings(settings)
        self._ports, self._random, self._formats_itself = ports, random, formats_itself
        self._authorizer = authorizer or AllowAll()
        self._listeners = Listeners(settings)
        for name in check_security(settings):
            log.warning("%s has no effect: all listeners of this node are PLAINTEXT, open and unencrypted", name)
        self._control: ControlPart | None = None
        self._broker: BrokerPart | None = None
        self._reception: Reception | None = None
        self._controllers: Reception | None = None
        self._admin: AdminServer | None = None
        self._coming_up: asyncio.Task[None] | None = None
        self._stopping = self._crashed = False
        self._progress = "starting"
        self.ending = "beginning to stop"
        """What a stop is about, for whoever has waited too long for it."""
        self.processor: Processor | None = None
        """Set before the start where the loop's thread is the machine's, and not a simulated one."""
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
        await self._listeners.open(self._ports.net)
        self._build()
        control = self.control
        control.start()
        await self._open_admin()
        if self._controllers is not None:
            await self._listeners.serve(self._controllers, for_controllers=True)
        await control.caught_up()
        if self._broker is not None:
            self._progress = "joining the cluster: logs are opened, the broker registers and waits to be unfenced"
            own_host = self._ports.net.host_name()
            await self._broker.start(self._listeners.advertised(own_host), own_host)
            assert self._reception is not None, "a broker has a reception"
            await self._listeners.serve(self._reception, for_controllers=False)
            self._broker.start_upkeep()
        self._watch.start()
        self._process.start()
        self.ready = True

    def _build(self) -> None:
        loop, settings, ports = asyncio.get_running_loop(), self.settings, self._ports
        self._watch, self._process = LoopWatch(loop, self.processor), ProcessWatch()
        bound = bound_settings(settings, self._listeners)
        if self._formats_itself:
            format_for(bound, files=ports.files, clock=ports.clock, random=self._random, own_host=ports.net.host_name())
        identity = read_identity(ports.files, settings, self._random)
        control = self._control = ControlPart(
            settings, bound, ports, self._random, identity, self._authorizer, self._fatal
        )
        if control.dispatch is not None:
            self._controllers = Reception(loop, control.services, control.dispatch)
        if settings.is_broker:
            from penstock.server.parts.broker import BrokerPart

            self._broker = BrokerPart(
                settings, ports, self._random, control, identity.cluster_id, self._authorizer, self.give_up
            )
            self._reception = Reception(loop, self._broker.services, self._broker.dispatch, beside=self._controllers)
        self._admin = AdminServer(loop, self._metrics(), health=self._ailments, readiness=self._obstacles)

    async def _open_admin(self) -> None:
        host, _, port = self.settings.text("penstock.admin.listener").rpartition(":")
        if port and self._admin is not None:
            try:
                await self._admin.open(self._ports.net, host, int(port))
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
        self._listeners.stop_accepting()
        self.ending = "waiting for calls to the disk that were begun"
        self._ports.offload.close()
        log.info("stopped")

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
            self.ending = "syncing and closing the logs"
            await broker.close()
            log.info("the logs are closed")
        self.ending = "leaving the metadata quorum"
        await control.close()
        self._listeners.stop_accepting()
        if self._controllers is not None:
            await self._controllers.close(DRAIN_MS)
        if self._admin is not None:
            self._admin.close()

    def crash(self) -> None:
        """Ends the node as if its process had been killed: nothing is flushed, handed over or answered.

        Connections are cut and tasks and timers gone when this returns; the disk is free for another life.
        """
        if self._crashed:
            return
        self._crashed, self.ready = True, False
        self._listeners.stop_accepting()
        for reception in (self._reception, self._controllers):
            if reception is not None:
                reception.cut()
        if self._control is not None:
            self._watch.stop()
            self._process.stop()
            self._control.crash()
        if self._admin is not None:
            self._admin.close()
        if self._broker is not None:
            self._broker.crash()
        if self._coming_up is not None and self._coming_up is not asyncio.current_task():
            self._coming_up.cancel()
        self._ports.offload.close()

    async def failed(self) -> str:
        """Returns why when this node cannot go on; whoever runs it ends it then."""
        await self._failed.wait()
        assert self._failure is not None, "a failure has a reason"
        return self._failure

    def _fatal(self, why: Exception) -> None:
        self.give_up(f"the metadata quorum has stopped: {why}")

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

    def _metrics(self) -> Metrics:
        metrics = Metrics()
        served: list[Dispatch] = []
        receptions = [each for each in (self._reception, self._controllers) if each is not None]
        if self._broker is not None:
            served.append(self._broker.dispatch)
            self._broker.measure(metrics)
            metrics.register("broker", lambda: broker_info(self.settings.node_id, self.addresses[0]))
        self.control.measure(metrics)
        if self.control.dispatch is not None:
            served.append(self.control.dispatch)
        metrics.register("requests", lambda: request_samples(*served))
        metrics.register("connections", lambda: connection_samples(self._listeners, *receptions))
        metrics.register("loop", lambda: loop_samples(self._watch))
        metrics.register("process", self._process.samples)
        return metrics

    def _ailments(self) -> list[str]:
        reasons = [] if self._failure is None else [self._failure]
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
            if self._broker is not None and self._broker.lifecycle.fenced:
                reasons.append("the controller keeps this broker fenced")
        return reasons
