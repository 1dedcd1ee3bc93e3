"""Between the quorum's own words and the protocol's: one topic, one partition, one cluster in every message."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

from penstock.model.errors import INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, NONE, ErrorCode, error_of
from penstock.model.ids import METADATA_TOPIC, Epoch, NodeId, Offset
from penstock.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from penstock.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from penstock.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from penstock.protocol.messages.vote import VoteRequest, VoteResponse
from penstock.quorum.events import (
    Ask,
    BeginAsk,
    ChangeAnswer,
    EndAsk,
    EpochAnswer,
    Reply,
    UpdateAsk,
    VoteAnswer,
    VoteAsk,
)
from penstock.quorum.state import ReplicaKey

if TYPE_CHECKING:
    from penstock.protocol.wire import Message
    from penstock.quorum.voters import Voter, VoterEndpoint
    from penstock.server.peers import Address


EpochRequest: TypeAlias = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest
"""A request about an epoch; each names the topic of the metadata."""

E_co = TypeVar("E_co", covariant=True)


class LeaderNow(NamedTuple):
    """Who leads which epoch, and where."""

    leader: NodeId
    epoch: Epoch
    address: Address | None


def problem_of(cluster_id: str, request: EpochRequest) -> ErrorCode:
    """What is wrong with the frame of a request that names topics."""
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        return INCONSISTENT_CLUSTER_ID
    named = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    return NONE if named == [(METADATA_TOPIC, [0])] else INVALID_REQUEST


# Going out


def to_wire(ask: Ask, cluster_id: str, me: Voter) -> tuple[Message, int]:
    """(request, version) of what the machine sends to others."""
    match ask:
        case VoteAsk():
            return _vote_request(ask, cluster_id), 2
        case BeginAsk():
            return _begin_request(ask, cluster_id, me.endpoints), 1
        case EndAsk():
            return _end_request(ask, cluster_id, me.endpoints), 1
        case UpdateAsk(epoch, voter):
            return _update_request(epoch, voter, cluster_id), 0
        case _:
            raise AssertionError(f"{ask} is asked by operators, never by nodes")


def _vote_request(ask: VoteAsk, cluster_id: str) -> VoteRequest:
    partition = VoteRequest.PartitionData(
        replica_epoch=ask.epoch,
        replica_id=ask.candidate.id,
        replica_directory_id=ask.candidate.directory,
        voter_directory_id=ask.voter.directory,
        last_offset_epoch=ask.last_epoch,
        last_offset=ask.end,
        pre_vote=ask.pre_vote,
    )
    topic = VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=ask.voter.id, topics=[topic])


def _begin_request(ask: BeginAsk, cluster_id: str, endpoints: tuple[VoterEndpoint, ...]) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequest.PartitionData(
        voter_directory_id=ask.voter.directory, leader_id=ask.leader, leader_epoch=ask.epoch
    )
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=ask.voter.id,
        topics=[BeginQuorumEpochRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            BeginQuorumEpochRequest.LeaderEndpoint(name=name, host=host, port=port) for name, host, port in endpoints
        ],
    )


def _end_request(ask: EndAsk, cluster_id: str, endpoints: tuple[VoterEndpoint, ...]) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequest.PartitionData(
        leader_id=ask.leader,
        leader_epoch=ask.epoch,
        preferred_successors=[key.id for key in ask.successors],
        preferred_candidates=[
            EndQuorumEpochRequest.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory)
            for key in ask.successors
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[EndQuorumEpochRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            EndQuorumEpochRequest.LeaderEndpoint(name=name, host=host, port=port) for name, host, port in endpoints
        ],
    )


def _update_request(epoch: Epoch, voter: Voter, cluster_id: str) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=voter.key.id,
        voter_directory_id=voter.key.directory,
        listeners=[
            UpdateRaftVoterRequest.Listener(name=name, host=host, port=port) for name, host, port in voter.endpoints
        ],
        kraft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=voter.kraft_version_min, max_supported_version=voter.kraft_version_max
        ),
    )


def from_wire(ask: Ask, reply: Message) -> Reply | ErrorCode:
    """What a node answered; an error code when it did not look at the request at all."""
    if isinstance(reply, UpdateRaftVoterResponse):
        leader = reply.current_leader
        return ChangeAnswer(Epoch(leader.leader_epoch), NodeId(leader.leader_id), error_of(reply.error_code))
    assert isinstance(reply, VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse)
    if reply.error_code:
        return error_of(reply.error_code)
    if [[each.partition_index for each in topic.partitions] for topic in reply.topics] != [[0]]:
        return INVALID_REQUEST
    part = reply.topics[0].partitions[0]
    error, epoch, leader_id = error_of(part.error_code), Epoch(part.leader_epoch), NodeId(part.leader_id)
    if isinstance(part, VoteResponse.PartitionData):
        assert isinstance(ask, VoteAsk), "a vote is asked for, a vote is answered"
        return VoteAnswer(epoch, leader_id, part.vote_granted and not part.error_code, error, ask.pre_vote)
    return EpochAnswer(epoch, leader_id, error)


# Coming in


def read_vote(request: VoteRequest, me: NodeId) -> VoteAsk:
    part = request.topics[0].partitions[0]
    return VoteAsk(
        Epoch(part.replica_epoch),
        ReplicaKey(NodeId(part.replica_id), part.replica_directory_id),
        ReplicaKey(_addressed(request.voter_id, me), part.voter_directory_id),
        Epoch(part.last_offset_epoch),
        Offset(part.last_offset),
        part.pre_vote,
    )


def read_begin(request: BeginQuorumEpochRequest, me: NodeId) -> BeginAsk:
    part = request.topics[0].partitions[0]
    voter = ReplicaKey(_addressed(request.voter_id, me), part.voter_directory_id)
    return BeginAsk(Epoch(part.leader_epoch), NodeId(part.leader_id), voter)


def read_end(request: EndQuorumEpochRequest) -> EndAsk:
    part = request.topics[0].partitions[0]
    named = [ReplicaKey(NodeId(each.candidate_id), each.candidate_directory_id) for each in part.preferred_candidates]
    successors = named or [ReplicaKey(NodeId(each)) for each in part.preferred_successors]
    return EndAsk(Epoch(part.leader_epoch), NodeId(part.leader_id), tuple(successors))


def _addressed(voter_id: int, me: NodeId) -> NodeId:
    """Old versions do not say whom they mean: whoever gets it."""
    return NodeId(voter_id) if voter_id >= 0 else me


def vote_response(answer: VoteAnswer, now: LeaderNow) -> VoteResponse:
    part = VoteResponse.PartitionData(
        error_code=answer.error.code,
        leader_id=answer.leader,
        leader_epoch=answer.epoch,
        vote_granted=answer.granted,
    )
    return VoteResponse(
        topics=[VoteResponse.TopicData(topic_name=METADATA_TOPIC, partitions=[part])],
        node_endpoints=endpoints(VoteResponse.NodeEndpoint, now),
    )


def begin_response(answer: EpochAnswer, now: LeaderNow) -> BeginQuorumEpochResponse:
    part = BeginQuorumEpochResponse.PartitionData(
        error_code=answer.error.code, leader_id=answer.leader, leader_epoch=answer.epoch
    )
    return BeginQuorumEpochResponse(
        topics=[BeginQuorumEpochResponse.TopicData(topic_name=METADATA_TOPIC, partitions=[part])],
        node_endpoints=endpoints(BeginQuorumEpochResponse.NodeEndpoint, now),
    )


def end_response(answer: EpochAnswer, now: LeaderNow) -> EndQuorumEpochResponse:
    part = EndQuorumEpochResponse.PartitionData(
        error_code=answer.error.code, leader_id=answer.leader, leader_epoch=answer.epoch
    )
    return EndQuorumEpochResponse(
        topics=[EndQuorumEpochResponse.TopicData(topic_name=METADATA_TOPIC, partitions=[part])],
        node_endpoints=endpoints(EndQuorumEpochResponse.NodeEndpoint, now),
    )


def update_response(answer: ChangeAnswer, now: LeaderNow) -> UpdateRaftVoterResponse:
    where = now.address
    return UpdateRaftVoterResponse(
        error_code=answer.error.code,
        current_leader=UpdateRaftVoterResponse.CurrentLeader(
            leader_id=now.leader,
            leader_epoch=now.epoch,
            host=where.host if where is not None else "",
            port=where.port if where is not None else 0,
        ),
    )


class EndpointKind(Protocol[E_co]):
    """How a response says where a node is."""

    def __call__(self, *, node_id: int, host: str, port: int) -> E_co: ...


def endpoints(kind: EndpointKind[E_co], now: LeaderNow) -> list[E_co]:
    """`node_endpoints`: where the leader is, if it is known."""
    return [] if now.address is None else [kind(node_id=now.leader, host=now.address.host, port=now.address.port)]
