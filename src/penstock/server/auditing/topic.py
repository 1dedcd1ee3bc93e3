"""The topic of audit events: what a node does to have its lines there, by what `topic_plan.py` says.

A node writes as itself: into its own log where it leads the partition, else over a link to the leader, by the client id
that tells such a write from others (`AUDIT_CLIENT`). Nobody is asked whether it may, and nothing of it is audited: an
event about an event would have no end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import error_of
from penstock.model.ids import AUDIT_TOPIC, NodeId
from penstock.protocol.messages.produce import ProduceResponse
from penstock.server.auditing.outlet import Line, Lost, Outlet
from penstock.server.auditing.topic_plan import (
    PATIENT_ATTEMPTS,
    WRITE_WITHIN_MS,
    Answer,
    Make,
    Wait,
    Write,
    answer_of,
    plan,
    request_of,
)
from penstock.server.coordinating.topic import TopicMaker
from penstock.server.dialling import towards_brokers
from penstock.server.doors import AUDIT_CLIENT, Later
from penstock.server.logs import Sparing
from penstock.server.peers import NetPeers
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Ports
    from penstock.protocol.messages.produce import ProduceRequest
    from penstock.protocol.wire import Message

_log = logging.getLogger("penstock.audit")

PURPOSE: Final = "audit"
PRODUCE_VERSION: Final = 12
"""The newest that calls topics by their names: one that was made anew is found as before."""
PAUSE_FIRST_MS: Final = 50.0
PAUSE_MAX_MS: Final = 5_000.0
ANSWER_WITHIN_MS: Final = WRITE_WITHIN_MS + 5_000


Produced = ProduceResponse | Later | Coroutine[object, None, ProduceResponse | Later]


class Produces(Protocol):
    """The broker of this node, as far as audit records need it."""

    def produce(
        self, request: ProduceRequest, version: int, allowed: Callable[[str], bool], *, internal_too: bool = False
    ) -> Produced: ...


class AuditTopic:
    """One for a node, on the loop of its broker if it has one. Lines go into `outlet`."""

    def __init__(
        self,
        settings: BrokerSettings,
        ports: Ports,
        image: Callable[[], ClusterImage],
        ask: Callable[[Message, int], Awaitable[Message]],
        produces: Produces | None,
    ) -> None:
        """`ask` reaches the active controller. PenstockError when the settings do not say how brokers are dialled."""
        self._node_id, self._listener = NodeId(settings.node_id), settings.inter_broker_listener_name
        self._replicas = settings.number("penstock.audit.topic.replication.factor")
        self._image, self._produces = image, produces
        self._make = TopicMaker(settings, ask, "audit", brokers=lambda: len(image().brokers)).make
        self._peers = NetPeers(
            ports.net, ports.clock,
            client_id=AUDIT_CLIENT,
            dial_first_ms=settings.number("socket.connection.setup.timeout.ms"),
            dial_max_ms=settings.number("socket.connection.setup.timeout.max.ms"),
            security=towards_brokers(settings, ports.offload),
        )  # fmt: skip
        self._sparing = Sparing(_log, clock=ports.clock.monotonic_ms)
        self.outlet = Outlet(f"the topic {AUDIT_TOPIC}", self._deliver, self._sparing)

    async def close(self) -> None:
        await self.outlet.close()
        self._peers.close()

    def abandon(self) -> None:
        self.outlet.abandon()
        self._peers.close()

    async def _deliver(self, lines: list[Line]) -> None:
        """Returns when the lines are in the topic, however long there is none; Lost when it does not take them."""
        attempt, pause_ms = 0, PAUSE_FIRST_MS
        while not await self._delivered(lines, attempt):
            attempt += 1
            await asyncio.sleep(pause_ms / 1_000)
            pause_ms = min(2 * pause_ms, PAUSE_MAX_MS)

    async def _delivered(self, lines: list[Line], attempt: int) -> bool:
        match plan(self._image(), self._node_id, self._listener, attempt, self._replicas):
            case Make():
                await self._make(AUDIT_TOPIC)
                return False
            case Wait(why):
                self._hindered(attempt, why)
                return False
            case Write() as way:
                return await self._written(way, request_of(lines, way.partition), attempt)

    async def _written(self, way: Write, request: ProduceRequest, attempt: int) -> bool:
        try:
            error_code = _error_in(await self._answer(way, request))
        except LinkError as broken:
            self._hindered(attempt, str(broken))
            return False
        match answer_of(error_code):
            case Answer.DELIVERED:
                return True
            case Answer.AGAIN:
                self._hindered(attempt, f"node {way.leader} says {error_of(error_code).name}")
                return False
            case Answer.LOST:
                raise Lost(f"node {way.leader} refuses them: {error_of(error_code).name}")

    def _hindered(self, attempt: int, why: str) -> None:
        if attempt >= PATIENT_ATTEMPTS:
            self._sparing.warning("wait", "audit events wait for the topic %s: %s", AUDIT_TOPIC, why)

    async def _answer(self, way: Write, request: ProduceRequest) -> ProduceResponse:
        if way.leader == self._node_id and self._produces is not None:
            outcome = self._produces.produce(request, PRODUCE_VERSION, lambda _topic: True, internal_too=True)
            return await _settled(outcome)
        reply: ProduceResponse = await self._peers.ask(
            way.address, request, PRODUCE_VERSION, purpose=PURPOSE, timeout_ms=ANSWER_WITHIN_MS
        )
        return reply


async def _settled(outcome: Produced) -> ProduceResponse:
    if isinstance(outcome, Coroutine):
        outcome = await outcome
    if isinstance(outcome, Later):
        if not outcome.missed:
            ready = asyncio.Event()
            outcome.when_ready = ready.set
            await ready.wait()
        answered = outcome.outcome()
        assert isinstance(answered, ProduceResponse), "what is asked for as a message is answered as one"
        return answered
    return outcome


def _error_in(reply: ProduceResponse) -> int:
    ((answer,),) = (topic.partition_responses for topic in reply.responses)
    return answer.error_code
