"""ListOffsets (2), versions 1-11: find the offset of a timestamp or of the ends of a partition.

Notes: 2 isolation level; 4 leader epochs; 6 flexible; 7 max timestamp (-3); 8 earliest local (-4); 9 latest tiered
(-5); 10 timeout; 11 earliest pending upload (-6).
"""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, int64, message, string, struct


@message(key=2, kind="request", versions="1-11", flexible="6+")
class ListOffsetsRequest:
    replica_id: int = int32()
    isolation_level: int = int8(since=2)
    topics: list[ListOffsetsTopic] = array("ListOffsetsTopic")
    timeout_ms: int = int32(since=10, ignorable=True)

    @struct()
    class ListOffsetsTopic:
        name: str = string()
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = array("ListOffsetsPartition")

    @struct()
    class ListOffsetsPartition:
        partition_index: int = int32()
        current_leader_epoch: int = int32(since=4, default=-1, ignorable=True)
        timestamp: int = int64()


@message(key=2, kind="response", versions="1-11", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: int = int32(since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array("ListOffsetsTopicResponse")

    @struct()
    class ListOffsetsTopicResponse:
        name: str = string()
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = array("ListOffsetsPartitionResponse")

    @struct()
    class ListOffsetsPartitionResponse:
        partition_index: int = int32()
        error_code: int = int16()
        timestamp: int = int64(default=-1)
        offset: int = int64(default=-1)
        leader_epoch: int = int32(since=4, default=-1)
