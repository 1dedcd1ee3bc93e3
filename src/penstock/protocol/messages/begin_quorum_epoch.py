"""BeginQuorumEpoch (53), versions 0-1: announce a new leader to the voters; Raft.

Notes: 1 flexible, directory ids and endpoints.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, message, string, struct, uint16, uuid


@message(key=53, kind="request", versions="0-1", flexible="1+")
class BeginQuorumEpochRequest:
    cluster_id: str | None = string(nullable=True, default=None)
    voter_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[TopicData] = array("TopicData")
    leader_endpoints: list[LeaderEndpoint] = array("LeaderEndpoint", since=1, ignorable=True)

    @struct()
    class TopicData:
        topic_name: str = string()
        partitions: list[BeginQuorumEpochRequest.PartitionData] = array("PartitionData")

    @struct(versions="1+")
    class LeaderEndpoint:
        name: str = string()
        host: str = string()
        port: int = uint16()

    @struct()
    class PartitionData:
        partition_index: int = int32()
        voter_directory_id: Uuid = uuid(since=1, ignorable=True)
        leader_id: int = int32()
        leader_epoch: int = int32()


@message(key=53, kind="response", versions="0-1", flexible="1+")
class BeginQuorumEpochResponse:
    error_code: int = int16()
    topics: list[TopicData] = array("TopicData")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", since=1, tag=0)

    @struct()
    class TopicData:
        topic_name: str = string()
        partitions: list[BeginQuorumEpochResponse.PartitionData] = array("PartitionData")

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
