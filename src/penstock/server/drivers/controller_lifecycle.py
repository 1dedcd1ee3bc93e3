"""This node's life as a broker and as a controller, seen from its own side: registers, reports, asks for leave to go.

It makes the requests that any broker sends to the active controller; they go through a door, which is a plain call
while the controller runs in this process. A broker is registered fenced, serves nobody until it is unfenced, and
before it stops hands over what it leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.metadata.features import SUPPORTED
from penstock.model.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from penstock.model.errors import NONE, STALE_BROKER_EPOCH, PenstockError, Refused, error_of
from penstock.model.ids import NodeId, Uuid
from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from penstock.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from penstock.protocol.messages.controller_registration import ControllerRegistrationRequest

if TYPE_CHECKING:
    from penstock.server.drivers.metadata_driver import MetadataDriver

log = logging.getLogger("penstock.lifecycle")

Ask = Callable[[Any, int], Awaitable[Any]]
"""(request, api version) → reply of the active controller."""

REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 2
NO_EPOCH: Final = -1
RETRY_MS: Final = 50


class NotRegistered(PenstockError):
    """The controller does not take this broker; it cannot serve."""


class BrokerLifecycle:
    """Owns the broker's epoch and its heartbeats."""

    def __init__(
        self,
        node_id: NodeId,
        cluster_id: str,
        incarnation_id: Uuid,
        metadata: MetadataDriver,
        ask: Ask,
        *,
        heartbeat_interval_ms: int = 2_000,
        rack: str | None = None,
    ) -> None:
        self._node_id, self._cluster_id, self._incarnation_id = node_id, cluster_id, incarnation_id
        self._metadata, self._ask = metadata, ask
        self._interval_ms, self._rack = heartbeat_interval_ms, rack
        self.broker_epoch = NO_EPOCH
        self.fenced = True
        self._wants_to_serve = False
        self._offline: dict[Uuid, None] = {}
        self._cordoned: list[Uuid] | None = None
        self._heartbeats: asyncio.Task[None] | None = None

    # Coming

    async def register_controller(self, endpoints: Iterable[Endpoint], own_host: str) -> None:
        """Tells where this node's controller listens."""
        request = ControllerRegistrationRequest(
            controller_id=self._node_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                ControllerRegistrationRequest.Listener(
                    name=each.name,
                    host=each.host or own_host,
                    port=each.port,
                    security_protocol=SECURITY_PROTOCOLS.index(each.security_protocol),
                )
                for each in endpoints
            ],
            features=[
                ControllerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
        )
        reply = await self._ask(request, 0)
        if reply.error_code != NONE.code:
            # Clusters below metadata.version 3.7 know no controller registrations and do without.
            log.info("the controller is not registered: %s", reply.error_message)

    async def register(
        self,
        endpoints: Iterable[Endpoint],
        own_host: str,
        log_dirs: Sequence[Uuid],
        *,
        previous_epoch: int = NO_EPOCH,
        cordoned: Sequence[Uuid] | None = None,
    ) -> int:
        """Registers the broker, fenced; its epoch. `previous_epoch` proves that the last stop was clean."""
        request = BrokerRegistrationRequest(
            broker_id=self._node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=each.name,
                    host=each.host or own_host,
                    port=each.port,
                    security_protocol=SECURITY_PROTOCOLS.index(each.security_protocol),
                )
                for each in endpoints
            ],
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
            rack=self._rack,
            log_dirs=sorted(log_dirs),
            previous_broker_epoch=previous_epoch,
        )
        reply: BrokerRegistrationResponse = await self._ask(request, REGISTRATION_VERSION)
        if reply.error_code != NONE.code:
            raise NotRegistered(f"broker {self._node_id} is not registered: {error_of(reply.error_code).name}")
        self.broker_epoch = reply.broker_epoch
        self._cordoned = None if cordoned is None else sorted(cordoned)
        return self.broker_epoch

    async def serve(self) -> None:
        """Asks to be unfenced and reports from now on; returns when clients are sent here."""
        self._wants_to_serve = True
        while self.fenced:
            reply = await self._beat()
            if reply.is_fenced:
                # Our image must contain our own registration first; with one node it does already.
                await asyncio.sleep(RETRY_MS / 1_000)
        self._heartbeats = asyncio.get_running_loop().create_task(self._report(), name="heartbeats")

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._interval_ms / 1_000)
            try:
                await self._beat()
            except Refused as refusal:
                log.warning("a heartbeat was refused: %s", refusal)

    async def _beat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=self._node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata.image.offset,
            want_fence=not self._wants_to_serve,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline),
            cordoned_log_dirs=self._cordoned,
        )
        reply: BrokerHeartbeatResponse = await self._ask(request, HEARTBEAT_VERSION)
        if reply.error_code == NONE.code:
            self.fenced = reply.is_fenced
        elif reply.error_code == STALE_BROKER_EPOCH.code:
            raise Refused(STALE_BROKER_EPOCH, "another process registered as this broker")
        return reply

    # Going

    async def directory_failed(self, directory_id: Uuid) -> None:
        """Reports a log directory that is offline; its replicas leave their ISRs."""
        self._offline[directory_id] = None
        await self._beat()

    async def cordon(self, directories: Iterable[Uuid]) -> None:
        """Reports which log directories take no new replicas, now and with every heartbeat."""
        cordoned = sorted(directories)
        if cordoned == (self._cordoned or []):
            return
        self._cordoned = cordoned
        if not self.fenced:
            await self._beat()

    async def shut_down(self, timeout_ms: int = 30_000) -> bool:
        """Hands over what this broker leads; whether the controller let it go in time."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            self._heartbeats = None
        if self.broker_epoch == NO_EPOCH:
            return True
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                # The first answer moves our partitions away, the second sees that everybody knows.
                waits_ms = 0
                while not (await self._beat(want_shut_down=True)).should_shut_down:
                    await asyncio.sleep(waits_ms / 1_000)
                    waits_ms = RETRY_MS
        except (TimeoutError, Refused) as why:
            log.warning("controlled shutdown did not complete: %s", why)
            return False
        return True
