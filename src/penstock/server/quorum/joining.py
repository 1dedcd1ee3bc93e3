"""A controller that adds itself to the voters (`controller.quorum.auto.join.enable`).

When a voter has its node id but another disk, it is removed first: that disk is gone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import NONE, error_of
from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest
from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from penstock.server.loops.duty import duty
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.model.ids import Offset
    from penstock.protocol.wire import Message
    from penstock.quorum.voters import Voter, VoterSet
    from penstock.server.peers import Address, Peers

log = logging.getLogger("penstock.quorum")

PURPOSE: Final = "quorum-join"
"""The leader waits with its answer, so nothing else may stand behind it."""


class Joined(Protocol):
    """What the quorum driver knows of the quorum."""

    @property
    def leader_address(self) -> Address | None: ...
    @property
    def leading(self) -> bool: ...
    @property
    def high_watermark(self) -> Offset | None: ...
    @property
    def kraft_version(self) -> int: ...
    @property
    def voters(self) -> VoterSet: ...


class QuorumJoining:
    """Looks every fetch timeout whether this node votes, and asks for it when it does not."""

    def __init__(
        self, quorum: Joined, peers: Peers, me: Voter, cluster_id: str, every_ms: int, request_timeout_ms: int
    ) -> None:
        self._quorum, self._peers, self._me, self._cluster_id = quorum, peers, me, cluster_id
        self._every_ms, self._request_timeout_ms = every_ms, request_timeout_ms
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = duty(self._run(), name="quorum joining")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_ms / 1_000)
            (request, version), leader = self._wanted(), self._quorum.leader_address
            if request is None or leader is None or self._quorum.leading or self._quorum.high_watermark is None:
                continue
            try:
                reply = await self._peers.ask(
                    leader, request, version, purpose=PURPOSE, timeout_ms=self._request_timeout_ms + self._every_ms
                )
            except LinkError as failure:
                log.info("the leader did not add this node to the voters: %s", failure)
                continue
            error = error_of(reply.error_code)
            if error is not NONE:
                log.info("the leader did not add this node to the voters: %s %s", error.name, reply.error_message)

    def _wanted(self) -> tuple[Message | None, int]:
        """The next request on the way into the voter set, and its version; None when there is nothing to ask for."""
        key, voters = self._me.key, self._quorum.voters
        if voters.has(key) or self._quorum.kraft_version < 1:
            return None, 0
        lost = voters.get(key.id)
        if lost is not None:
            removal = RemoveRaftVoterRequest(
                cluster_id=self._cluster_id, voter_id=key.id, voter_directory_id=lost.key.directory
            )
            return removal, 0
        addition = AddRaftVoterRequest(
            cluster_id=self._cluster_id,
            timeout_ms=self._every_ms,
            voter_id=key.id,
            voter_directory_id=key.directory,
            listeners=[
                AddRaftVoterRequest.Listener(name=name, host=host, port=port) for name, host, port in self._me.endpoints
            ],
            ack_when_committed=False,
        )
        return addition, 1
