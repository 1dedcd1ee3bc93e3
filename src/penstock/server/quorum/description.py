"""DescribeQuorum: leader, voters and observers of the metadata log, and how far each of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import NOT_LEADER_OR_FOLLOWER
from penstock.model.ids import METADATA_TOPIC
from penstock.protocol.messages.describe_quorum import DescribeQuorumResponse

if TYPE_CHECKING:
    from penstock.model.ids import Offset
    from penstock.model.ports import Clock
    from penstock.quorum.leading import Progress
    from penstock.quorum.node import QuorumNode
    from penstock.quorum.state import ReplicaKey
    from penstock.quorum.voters import Voter

Replica = DescribeQuorumResponse.ReplicaState


def describe(node: QuorumNode, end: Offset, clock: Clock) -> DescribeQuorumResponse:
    """The reply; only the leader knows it."""
    partition = _unknown(node) if node.leadership is None else _known(node, end, clock)
    nodes = [] if node.leadership is None else [_address(voter) for voter in node.voters]
    topic = DescribeQuorumResponse.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return DescribeQuorumResponse(error_message=None, topics=[topic], nodes=nodes)


def _unknown(node: QuorumNode) -> DescribeQuorumResponse.PartitionData:
    return DescribeQuorumResponse.PartitionData(
        error_code=NOT_LEADER_OR_FOLLOWER.code,
        error_message="This node does not lead the metadata quorum.",
        leader_id=node.leader,
        leader_epoch=node.epoch,
        high_watermark=-1,
    )


def _known(node: QuorumNode, end: Offset, clock: Clock) -> DescribeQuorumResponse.PartitionData:
    leadership = node.leadership
    assert leadership is not None, "a leader leads"
    observers = leadership.observers(node.voters, clock.monotonic_ms())
    return DescribeQuorumResponse.PartitionData(
        error_message=None,
        leader_id=node.leader,
        leader_epoch=node.epoch,
        high_watermark=-1 if node.high_watermark is None else node.high_watermark,
        current_voters=[
            _own(node, end, clock) if voter.key.id == node.me.key.id else _voter(node, voter, clock)
            for voter in node.voters
        ],
        observers=[_replica(each.key, each, clock) for each in observers if each.key.id != node.me.key.id],
    )


def _own(node: QuorumNode, end: Offset, clock: Clock) -> Replica:
    now = clock.now_ms()
    key = node.me.key
    return Replica(
        replica_id=key.id,
        replica_directory_id=key.directory,
        log_end_offset=end,
        last_fetch_timestamp=now,
        last_caught_up_timestamp=now,
    )


def _voter(node: QuorumNode, voter: Voter, clock: Clock) -> Replica:
    leadership = node.leadership
    assert leadership is not None, "a leader leads"
    heard = [each for key, each in leadership.replicas.items() if voter.key.matches(key)]
    newest = max(heard, key=lambda each: each.end, default=None)
    return _replica(voter.key, newest or leadership.progress(voter.key), clock)


def _replica(key: ReplicaKey, progress: Progress, clock: Clock) -> Replica:
    return Replica(
        replica_id=key.id,
        replica_directory_id=key.directory,
        log_end_offset=progress.end,
        last_fetch_timestamp=_wall(progress.fetched_ms, clock),
        last_caught_up_timestamp=_wall(progress.caught_up_ms, clock),
    )


def _wall(monotonic_ms: float | None, clock: Clock) -> int:
    """A moment of the monotonic clock as a timestamp; -1 for never."""
    if monotonic_ms is None:
        return -1
    return int(clock.now_ms() - (clock.monotonic_ms() - monotonic_ms))


def _address(voter: Voter) -> DescribeQuorumResponse.Node:
    return DescribeQuorumResponse.Node(
        node_id=voter.key.id,
        listeners=[
            DescribeQuorumResponse.Listener(name=name, host=host, port=port) for name, host, port in voter.endpoints
        ],
    )
