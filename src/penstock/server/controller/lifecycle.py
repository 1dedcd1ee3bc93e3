"""This node's life as a broker, seen from its own side: it registers, reports, and asks for leave to go.

It makes the requests that any broker sends to the active controller; `ask` finds the controller, wherever it is. A
broker is registered fenced, serves nobody until it is unfenced, and before it stops hands over what it leads. Fenced
because it was silent for too long, it goes on reporting and is let back. Only when another process has registered as
this broker, or an operator has removed it, is its life over: `on_stale` is told why.

What becomes of it; an empty field: nothing.

| | not registered | registered | serving | fenced again | leaving |
|---|---|---|---|---|---|
| the controller takes it | registered | | | | |
| its id seems taken | asks again until time is up | | | | |
| it is refused for good | `NotRegistered` | | | | |
| a heartbeat is answered: unfenced | | serving | | serving | asks again |
| a heartbeat is answered: fenced | | asks again soon | fenced again | asks again soon | asks again |
| a heartbeat is answered: may stop | | | | | gone, with leave |
| no controller answers, or it fails | asks again | asks again | reports on | reports on | asks again until time is up |
| its epoch is no longer its own | | refused | over: `on_stale` | over: `on_stale` | gone, without leave |
| another controller leads (`hurry`) | | | reports soon | reports soon | |
| a log directory fails | registers without it | reports it at once | the same | the same | the same |
| directories are cordoned | registers with them | reports later | reports at once | reports later | |
| `shut_down` | gone | leaving | leaving | leaving | |

What a directory's failure or cordon was once reported with is said again by every heartbeat. The controller's half of
the table is in `controller/heartbeats.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.metadata.features import SUPPORTED
from penstock.model.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from penstock.model.errors import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    PenstockError,
    Refused,
    error_of,
)
from penstock.model.ids import NodeId, Uuid
from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from penstock.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from penstock.server.loops.duty import duty

if TYPE_CHECKING:
    from penstock.server.controller.channel import Ask
    from penstock.server.quorum.metadata_driver import MetadataDriver

log = logging.getLogger("penstock.lifecycle")

"""(request, api version) → reply of the active controller."""

REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 2
NO_EPOCH: Final = -1
RETRY_MS: Final = 50
FENCED_RETRY_MS: Final = 200
REGISTRATION_RETRY_MS: Final = 250
HANDOVER_MS: Final = 10_000
# The controller that was asked is failing itself; another will lead.
_PASSING: Final = frozenset({KAFKA_STORAGE_ERROR, NOT_CONTROLLER, UNKNOWN_SERVER_ERROR})
ATTEMPT_S: Final = 1.0
ALONE_MS: Final = 1_000
"""How long the last broker of a cluster waits for leave: there is nobody to hand anything over to."""


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
        registration_timeout_ms: int = 60_000,
        rack: str | None = None,
        on_stale: Callable[[str], None] = lambda _why: None,
        acted_on: Callable[[], int] | None = None,
    ) -> None:
        """`acted_on` is the metadata offset that the broker itself has taken in; by default what is published."""
        self._acted_on = acted_on or (lambda: metadata.image.offset)
        self._node_id, self._cluster_id, self._incarnation_id = node_id, cluster_id, incarnation_id
        self._metadata, self._ask, self._on_stale = metadata, ask, on_stale
        self._interval_ms, self._registration_timeout_ms, self._rack = (
            heartbeat_interval_ms, registration_timeout_ms, rack,
        )  # fmt: skip
        self.broker_epoch = NO_EPOCH
        self.fenced = True
        self._wants_to_serve = False
        self._offline: dict[Uuid, None] = {}
        self._known_offline: frozenset[Uuid] = frozenset()
        self._cordoned: list[Uuid] | None = None
        self._heartbeats: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    # Coming

    async def register(
        self,
        endpoints: Iterable[Endpoint],
        own_host: str,
        log_dirs: Sequence[Uuid],
        *,
        previous_epoch: int = NO_EPOCH,
        cordoned: Sequence[Uuid] | None = None,
    ) -> int:
        """Registers the broker, fenced; its epoch. `previous_epoch` proves that the last stop was clean.

        Waits for a controller as long as it takes. A process that was killed is remembered until its session runs
        out, so an id that seems taken is asked for again for `registration_timeout_ms`. `NotRegistered` when the
        controller does not want this broker.
        """
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
        reply = await self._registered(request)
        self.broker_epoch = reply.broker_epoch
        self._cordoned = None if cordoned is None else sorted(cordoned)
        return self.broker_epoch

    async def _registered(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        loop = asyncio.get_running_loop()
        give_up_at, told = loop.time() + self._registration_timeout_ms / 1_000, False
        while True:
            try:
                reply = await self._ask(request, REGISTRATION_VERSION)
                assert isinstance(reply, BrokerRegistrationResponse), "a request is answered with its own reply"
            except Refused as refusal:
                if refusal.error is not REQUEST_TIMED_OUT:
                    raise
                log.warning("broker %d waits to be registered: %s", self._node_id, refusal.why)
                continue
            if reply.error_code == NONE.code:
                return reply
            error = error_of(reply.error_code)
            if error in _PASSING:
                log.warning("broker %d waits to be registered: the controller answers %s", self._node_id, error.name)
                await asyncio.sleep(REGISTRATION_RETRY_MS / 1_000)
                continue
            if error is not DUPLICATE_BROKER_REGISTRATION:
                raise NotRegistered(
                    f"broker {self._node_id} is not registered: {error.name}; the active controller's log says why"
                )
            if loop.time() >= give_up_at:
                raise NotRegistered(
                    f"another process runs as broker {self._node_id}; stop it, or give this node a node.id of its own"
                )
            if not told:
                told = True
                log.info("broker %d is still known as running; it registers when that session ends", self._node_id)
            await asyncio.sleep(REGISTRATION_RETRY_MS / 1_000)

    async def serve(self) -> None:
        """Asks to be unfenced and reports from now on; returns when clients are sent here."""
        self._wants_to_serve = True
        while self.fenced:
            try:
                reply = await self._beat()
            except Refused as refusal:
                if refusal.error is not REQUEST_TIMED_OUT:
                    raise
                log.warning("broker %d waits to be let loose on clients: %s", self._node_id, refusal.why)
                continue
            if reply.is_fenced:
                # Our image must contain our own registration first; with one node it does already.
                await asyncio.sleep(RETRY_MS / 1_000)
        self._heartbeats = duty(self._report(), name="heartbeats")

    def hurry(self) -> None:
        """The link to the controller broke, or another controller leads: it should hear of us soon."""
        self._hurry.set()

    async def _pause(self) -> None:
        """Until the next heartbeat is due; at least a moment, whatever hurries us."""
        self._hurry.clear()
        pause_ms = min(self._interval_ms, FENCED_RETRY_MS) if self.fenced else self._interval_ms
        await asyncio.sleep(min(pause_ms, RETRY_MS) / 1_000)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0, pause_ms - RETRY_MS) / 1_000):
                await self._hurry.wait()

    async def _report(self) -> None:
        while True:
            await self._pause()
            was_fenced = self.fenced
            try:
                await self._beat()
            except Refused as refusal:
                if refusal.error is STALE_BROKER_EPOCH:
                    self._on_stale(refusal.why)
                    return
                log.warning("a heartbeat was not answered: %s", refusal)
                continue
            except Exception:
                # Whatever is wrong with one heartbeat, without the next the broker would be missed.
                log.exception("a heartbeat failed")
                continue
            if self.fenced != was_fenced:
                log.warning("the controller has %s this broker", "fenced" if self.fenced else "unfenced")

    async def _beat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=self._node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._acted_on(),
            want_fence=not self._wants_to_serve,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline),
            cordoned_log_dirs=self._cordoned,
        )
        reply = await self._ask(request, HEARTBEAT_VERSION)
        assert isinstance(reply, BrokerHeartbeatResponse), "a request is answered with its own reply"
        if reply.error_code == NONE.code:
            self.fenced = reply.is_fenced
            self._known_offline = frozenset(request.offline_log_dirs)
        elif reply.error_code in (STALE_BROKER_EPOCH.code, BROKER_ID_NOT_REGISTERED.code):
            known = self._metadata.image.brokers.get(self._node_id)
            why = "another process has registered as" if known is not None else "an operator has removed"
            raise Refused(STALE_BROKER_EPOCH, f"{why} broker {self._node_id}")
        return reply

    # Going

    async def directory_failed(self, directory_id: Uuid) -> None:
        """Reports a log directory that is offline; its replicas leave their ISRs."""
        self._offline[directory_id] = None
        await self._beat()

    async def report_failed(self, directory_id: Uuid) -> None:
        """The same for one whom nobody listens to: what is not taken now, the next heartbeat says again."""
        try:
            await self.directory_failed(directory_id)
        except Refused as refusal:
            log.warning("the controller did not take a report: %s", refusal)

    def has_reported(self, directory_id: Uuid) -> bool:
        """Whether the controller knows that a log directory is offline."""
        return directory_id in self._known_offline

    async def cordon(self, directories: Iterable[Uuid]) -> None:
        """Reports which log directories take no new replicas, now and with every heartbeat."""
        cordoned = sorted(directories)
        if cordoned == (self._cordoned or []):
            return
        self._cordoned = cordoned
        if not self.fenced:
            await self._beat()

    async def shut_down(self, timeout_ms: int = HANDOVER_MS) -> bool:
        """Hands over what this broker leads; whether the controller let it go in time.

        Meanwhile it goes on serving: clients are told of their new leaders by the old one.
        """
        await self.fall_silent()
        if self.broker_epoch == NO_EPOCH:
            return True
        loop = asyncio.get_running_loop()
        started = moved = loop.time()
        led, waits_ms, why = self._led(), 0, "the controller did not let it go"
        while (left_s := self._time_left_s(timeout_ms, started, moved)) > 0:
            try:
                async with asyncio.timeout(min(left_s, ATTEMPT_S)):
                    # The first answers move our partitions away, a later one sees that everybody knows.
                    if (await self._beat(want_shut_down=True)).should_shut_down:
                        return True
            except TimeoutError:
                why = "no controller answered"
            except Refused as refusal:
                if refusal.error is not REQUEST_TIMED_OUT:
                    why = str(refusal)
                    break
            if (led_now := self._led()) < led:
                led, moved, waits_ms = led_now, loop.time(), 0  # many go a part at a time
            await asyncio.sleep(waits_ms / 1_000)
            waits_ms = RETRY_MS
        log.warning("broker %d stops without leave: %s", self._node_id, why)
        return False

    async def fall_silent(self) -> None:
        """Sends no more heartbeats."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            self._heartbeats = None

    def _time_left_s(self, timeout_ms: int, started: float, moved: float) -> float:
        """How long leave is still worth waiting for; not long when every other broker has gone or is going.

        `moved` is when something was last handed over: while that goes on, nobody is in vain.
        """
        now = asyncio.get_running_loop().time()
        left_s = started + timeout_ms / 1_000 - now
        others = (each for each in self._metadata.image.brokers.values() if each.id != self._node_id)
        return left_s if any(each.active for each in others) else min(left_s, moved + ALONE_MS / 1_000 - now)

    def _led(self) -> int:
        """How many partitions this broker leads, as far as it has heard."""
        topics = self._metadata.image.topics.values()
        return sum(partition.leader == self._node_id for topic in topics for partition in topic.partitions)
