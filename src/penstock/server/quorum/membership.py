"""Changes who votes: AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter, as the leader carries them out.

A change that cannot be made yet (another one is not committed, the new voter is not caught up) is tried again until its
time is up. The reply waits for the commit.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from penstock.model.errors import (
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    NONE,
    REQUEST_TIMED_OUT,
    ErrorCode,
    Refused,
)
from penstock.model.ids import ZERO_UUID, Epoch, NodeId
from penstock.protocol.messages.add_raft_voter import AddRaftVoterResponse
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from penstock.protocol.messages.update_raft_voter import UpdateRaftVoterResponse
from penstock.quorum.events import AddAsk, ChangeAnswer, RemoveAsk, UpdateAsk
from penstock.quorum.state import ReplicaKey
from penstock.quorum.voters import Voter, VoterEndpoint
from penstock.server.peers import Address
from penstock.server.quorum.messages import update_response
from penstock.server.quorum.transport import PURPOSE
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.model.ids import Offset
    from penstock.model.ports import Clock
    from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest
    from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
    from penstock.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
    from penstock.quorum.events import ChangeAsk
    from penstock.server.peers import Peers
    from penstock.server.quorum.messages import LeaderNow

    _ChangeRequest: TypeAlias = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest

KRAFT_VERSION: Final = "kraft.version"
_API_VERSIONS: Final = 4
_TRY_AGAIN_MS: Final = 50.0
_TIMEOUT_MS: Final = 30_000.0
"""How long a change may take that names no time of its own."""


class Changed(Protocol):
    """What the quorum driver does for a change."""

    @property
    def leader_now(self) -> LeaderNow: ...
    @property
    def leading(self) -> bool: ...
    async def change(self, ask: ChangeAsk) -> ChangeAnswer: ...
    async def committed(self, end: Offset) -> None: ...


class _Outcome(NamedTuple):
    error: ErrorCode
    message: str | None = None


class QuorumMembership:
    """Runs one request to its end; several may run at once, the quorum takes one change after the other."""

    def __init__(
        self, quorum: Changed, peers: Peers | None, clock: Clock, cluster_id: str, request_timeout_ms: float
    ) -> None:
        self._quorum, self._peers, self._clock, self._cluster_id = quorum, peers, clock, cluster_id
        self._request_timeout_ms = request_timeout_ms

    async def add(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
        outcome = self._checked(request, _endpoints(request.listeners)) or await self._added(request)
        return AddRaftVoterResponse(error_code=outcome.error.code, error_message=outcome.message)

    async def remove(self, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
        ask = RemoveAsk(ReplicaKey(NodeId(request.voter_id), request.voter_directory_id))
        outcome = self._checked(request) or await self._done(ask, _TIMEOUT_MS)
        return RemoveRaftVoterResponse(error_code=outcome.error.code, error_message=outcome.message)

    async def update(self, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
        feature = request.kraft_version_feature
        voter = Voter(
            ReplicaKey(NodeId(request.voter_id), request.voter_directory_id),
            _endpoints(request.listeners),
            feature.min_supported_version,
            feature.max_supported_version,
        )
        refused = self._checked(request, voter.endpoints)
        if refused is not None:
            answer = ChangeAnswer(self._quorum.leader_now.epoch, error=refused.error)
        else:
            # The voter asks again by itself, so it need not wait for the commit.
            answer = await self._quorum.change(UpdateAsk(Epoch(request.current_leader_epoch), voter))
        return update_response(answer, self._quorum.leader_now)

    def _checked(self, request: _ChangeRequest, listeners: tuple[VoterEndpoint, ...] | None = None) -> _Outcome | None:
        """What is wrong with the request itself."""
        if request.cluster_id is not None and request.cluster_id != self._cluster_id:
            return _Outcome(INCONSISTENT_CLUSTER_ID, f"this is cluster {self._cluster_id}")
        if request.voter_id < 0:
            return _Outcome(INVALID_REQUEST, f"{request.voter_id} is no node id")
        if request.voter_directory_id == ZERO_UUID:
            return _Outcome(INVALID_REQUEST, "the voter's directory id is missing")
        if listeners is not None and not all(point.host and point.port for point in listeners):
            return _Outcome(INVALID_REQUEST, "a listener needs host and port")
        if listeners is not None and not listeners:
            return _Outcome(INVALID_REQUEST, "the voter's controller listener is missing")
        return None

    async def _added(self, request: AddRaftVoterRequest) -> _Outcome:
        deadline = self._clock.monotonic_ms() + (request.timeout_ms if request.timeout_ms > 0 else _TIMEOUT_MS)
        key = ReplicaKey(NodeId(request.voter_id), request.voter_directory_id)
        endpoints = _endpoints(request.listeners)
        spoken = (0, 1)
        if self._peers is not None and self._quorum.leading:
            try:
                spoken = await self._spoken(Address(endpoints[0].host, endpoints[0].port))
            except LinkError as failure:
                return _Outcome(REQUEST_TIMED_OUT, f"node {key.id} does not answer at {failure}; is it running?")
        ask = AddAsk(Voter(key, endpoints, *spoken))
        return await self._done(ask, deadline - self._clock.monotonic_ms(), wait=request.ack_when_committed)

    async def _spoken(self, address: Address) -> tuple[int, int]:
        """Which kraft versions a node speaks, as it says itself."""
        assert self._peers is not None
        ask = ApiVersionsRequest(client_software_name="penstock", client_software_version="0")
        reply = await self._peers.ask(address, ask, _API_VERSIONS, purpose=PURPOSE, timeout_ms=self._request_timeout_ms)
        for feature in reply.supported_features:
            if feature.name == KRAFT_VERSION:
                return feature.min_version, feature.max_version
        return 0, 0

    async def _done(self, ask: ChangeAsk, timeout_ms: float, *, wait: bool = True) -> _Outcome:
        deadline = self._clock.monotonic_ms() + timeout_ms
        while True:
            answer = await self._quorum.change(ask)
            if answer.error is not REQUEST_TIMED_OUT or self._clock.monotonic_ms() + _TRY_AGAIN_MS >= deadline:
                break
            await asyncio.sleep(_TRY_AGAIN_MS / 1_000)
        if answer.error is not NONE:
            return _Outcome(answer.error, answer.message)
        if not wait:
            return _Outcome(NONE)
        left_ms = max(deadline - self._clock.monotonic_ms(), 0)
        try:
            async with asyncio.timeout(left_ms / 1_000):
                await self._quorum.committed(answer.end)
        except TimeoutError:
            return _Outcome(REQUEST_TIMED_OUT, "the change is in the log but not committed yet; it may still be")
        except Refused as refusal:
            return _Outcome(refusal.error, f"the leader changed meanwhile: {refusal}; look whether the change was made")
        return _Outcome(NONE)


def _endpoints(
    listeners: Sequence[AddRaftVoterRequest.Listener | UpdateRaftVoterRequest.Listener],
) -> tuple[VoterEndpoint, ...]:
    return tuple(VoterEndpoint(each.name, each.host, each.port) for each in listeners)
