"""Vote (52), versions 0-2: ask a voter for its vote; Raft.

Notes: 1 directory ids of candidate and voter; 2 asks first whether a vote would be won.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int16, int32, int64, message, string, struct, uint16, uuid


@message(key=52, kind="request", versions="0-2", flexible="0+")
class VoteRequest:
    cluster_id: str | None = string(nullable=True, default=None)
    voter_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[TopicData] = array("TopicData")

    @struct()
    class TopicData:
        topic_name: str = string()
        partitions: list[VoteRequest.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition_index: int = int32()
        replica_epoch: int = int32()
        replica_id: int = int32()
        replica_directory_id: Uuid = uuid(since=1, ignorable=True)
        voter_directory_id: Uuid = uuid(since=1, ignorable=True)
        last_offset_epoch: int = int32()
        last_offset: int = int64()
        pre_vote: bool = boolean(since=2)


@message(key=52, kind="response", versions="0-2", flexible="0+")
class VoteResponse:
    error_code: int = int16()
    topics: list[TopicData] = array("TopicData")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", since=1, tag=0)

    @struct()
    class TopicData:
        topic_name: str = string()
        partitions: list[VoteResponse.PartitionData] = array("PartitionData")

    @struct(versions="1+")
    class NodeEndpoint:
        node_id: int = int32()
        host: str = string()
        port: int = uint16()

    @struct()
    class PartitionData:
        partition_index: int = int32()
        error_code: int = int16()
        leader_id: int = int32()
        leader_epoch: int = int32()
        vote_granted: bool = boolean()
