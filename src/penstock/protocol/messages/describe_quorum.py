"""DescribeQuorum (55), versions 0-2: describe the state of the metadata quorum.

Notes: 1 times of the last fetch; 2 directory ids, endpoints and error texts.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, int64, message, string, struct, uint16, uuid


@message(key=55, kind="request", versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    topics: list[TopicData] = array("TopicData")

    @struct()
    class TopicData:
        topic_name: str = string()
        partitions: list[DescribeQuorumRequest.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition_index: int = int32()


@message(key=55, kind="response", versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    error_code: int = int16()
    error_message: str | None = string(since=2, nullable=True, ignorable=True)
    topics: list[TopicData] = array("TopicData")
    nodes: list[Node] = array("Node", since=2)

    @struct()
    class TopicData:
        topic_name: str = string()
        partitions: list[DescribeQuorumResponse.PartitionData] = array("PartitionData")

    @struct(versions="2+")
    class Node:
        node_id: int = int32()
        listeners: list[DescribeQuorumResponse.Listener] = array("Listener")

    @struct()
    class PartitionData:
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(since=2, nullable=True, ignorable=True)
        leader_id: int = int32()
        leader_epoch: int = int32()
        high_watermark: int = int64()
        current_voters: list[DescribeQuorumResponse.ReplicaState] = array("ReplicaState")
        observers: list[DescribeQuorumResponse.ReplicaState] = array("ReplicaState")

    @struct(versions="2+")
    class Listener:
        name: str = string()
        host: str = string()
        port: int = uint16()

    @struct()
    class ReplicaState:
        replica_id: int = int32()
        replica_directory_id: Uuid = uuid(since=2)
        log_end_offset: int = int64()
        last_fetch_timestamp: int = int64(since=1, default=-1, ignorable=True)
        last_caught_up_timestamp: int = int64(since=1, default=-1, ignorable=True)
