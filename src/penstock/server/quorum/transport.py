"""Carries what the quorum says to other nodes. Nobody waits for an answer: it comes back as an event, or never."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import INCONSISTENT_CLUSTER_ID, ErrorCode
from penstock.quorum.events import VoteAsk
from penstock.server.loops.duty import duty
from penstock.server.quorum.messages import from_wire, to_wire
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.model.ids import NodeId
    from penstock.protocol.wire import Message
    from penstock.quorum.events import Ask, Reply
    from penstock.quorum.voters import Voter
    from penstock.server.peers import Address, Peers
    from penstock.server.quorum.contacts import Contacts

log = logging.getLogger("penstock.quorum")

PURPOSE: Final = "quorum"
_UNDER_WAY_MAX: Final = 4
"""Requests to one node that are not answered; when more are made the oldest is given up."""


class QuorumSender:
    """Sends to voters and leaders. A request for a vote is repeated while it is of use; the others are made again."""

    def __init__(
        self,
        peers: Peers,
        contacts: Contacts,
        cluster_id: str,
        me: Voter,
        *,
        request_timeout_ms: float,
        retry_backoff_ms: float,
        address_of: Callable[[NodeId], Address | None],
        still_wanted: Callable[[VoteAsk], bool],
        answered: Callable[[NodeId, Reply], None],
    ) -> None:
        self._peers, self._contacts, self._cluster_id, self._me = peers, contacts, cluster_id, me
        self._timeout_ms, self._backoff_ms = request_timeout_ms, retry_backoff_ms
        self._address_of, self._still_wanted, self._answered = address_of, still_wanted, answered
        self._under_way: dict[NodeId, list[asyncio.Task[None]]] = {}

    def send(self, to: NodeId, ask: Ask) -> None:
        running = [each for each in self._under_way.get(to, ()) if not each.done()]
        if len(running) >= _UNDER_WAY_MAX:
            running.pop(0).cancel()
        running.append(duty(self._carry(to, ask), name=f"quorum to {to}"))
        self._under_way[to] = running

    async def _carry(self, to: NodeId, ask: Ask) -> None:
        request, version = to_wire(ask, self._cluster_id, self._me)
        while True:
            reply = await self._asked(to, request, version)
            if reply is not None:
                self._hear(to, ask, reply)
                return
            await asyncio.sleep(self._backoff_ms / 1_000)
            if not isinstance(ask, VoteAsk) or not self._still_wanted(ask):
                return

    async def _asked(self, to: NodeId, request: Message, version: int) -> Message | None:
        """The reply; None when there is none."""
        address = self._address_of(to)
        if address is None:
            log.debug("where node %d listens is not known", to)
            return None
        try:
            reply: Message = await self._peers.ask(
                address, request, version, purpose=PURPOSE, timeout_ms=self._timeout_ms
            )
            return reply
        except LinkError as failure:
            log.debug("node %d did not answer: %s", to, failure)
            return None

    def _hear(self, to: NodeId, ask: Ask, reply: Message) -> None:
        answer = from_wire(ask, reply)
        if answer is INCONSISTENT_CLUSTER_ID:
            words = "node %d belongs to another cluster; this node is in cluster %s, as its meta.properties says"
            log.warning(words, to, self._cluster_id)
            return
        if isinstance(answer, ErrorCode):
            log.warning("node %d refused %s: %s", to, type(ask).__name__, answer.name)
            return
        self._contacts.tell_all(answer.epoch, getattr(reply, "node_endpoints", ()))
        self._answered(to, answer)

    async def drain(self, timeout_ms: float) -> None:
        """Waits a little for what is under way, then gives it up."""
        if running := [each for tasks in self._under_way.values() for each in tasks if not each.done()]:
            await asyncio.wait(running, timeout=timeout_ms / 1_000)
        self.stop()

    def stop(self) -> None:
        for tasks in self._under_way.values():
            for each in tasks:
                each.cancel()
        self._under_way.clear()
