"""EndQuorumEpoch (54), versions 0-1: announce that a leader resigns, and who should follow; Raft.

Notes: 1 flexible, candidates with directory ids.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, message, string, struct, uint16, uuid


@message(key=54, kind="request", versions="0-1", flexible="1+")
class EndQuorumEpochRequest:
    cluster_id: str | None = string(nullable=True, default=None)
    topics: list[TopicData] = array("TopicData")
    leader_endpoints: list[LeaderEndpoint] = array("LeaderEndpoint", since=1, ignorable=True)

    @struct()
    class TopicData:
        topic_name: str = string()
        partitions: list[EndQuorumEpochRequest.PartitionData] = array("PartitionData")

    @struct(versions="1+")
    class LeaderEndpoint:
        name: str = string()
        host: str = string()
        port: int = uint16()

    @struct()
    class PartitionData:
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32()
        preferred_successors: list[int] = array(int32, until=0, ignorable=True)
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = array("ReplicaInfo", since=1, ignorable=True)

    @struct(versions="1+")
    class ReplicaInfo:
        candidate_id: int = int32()
        candidate_directory_id: Uuid = uuid()


@message(key=54, kind="response", versions="0-1", flexible="1+")
class EndQuorumEpochResponse:
    error_code: int = int16()
    topics: list[TopicData] = array("TopicData")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", since=1, tag=0)

    @struct()
    class TopicData:
        topic_name: str = string()
        partitions: list[EndQuorumEpochResponse.PartitionData] = array("PartitionData")

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
