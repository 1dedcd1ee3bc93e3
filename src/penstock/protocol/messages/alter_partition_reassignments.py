"""AlterPartitionReassignments (45), versions 0-1: move partitions to other replicas, or cancel a move.

Notes: 1 can refuse a change of the replication factor.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int16, int32, message, string, struct


@message(key=45, kind="request", versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean(since=1, default=True)
    topics: list[ReassignableTopic] = array("ReassignableTopic")

    @struct()
    class ReassignableTopic:
        name: str = string()
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = array("ReassignablePartition")

    @struct()
    class ReassignablePartition:
        partition_index: int = int32()
        replicas: list[int] | None = array(int32, nullable=True, default=None)


@message(key=45, kind="response", versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(since=1, default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    responses: list[ReassignableTopicResponse] = array("ReassignableTopicResponse")

    @struct()
    class ReassignableTopicResponse:
        name: str = string()
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = array(
            "ReassignablePartitionResponse"
        )

    @struct()
    class ReassignablePartitionResponse:
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
