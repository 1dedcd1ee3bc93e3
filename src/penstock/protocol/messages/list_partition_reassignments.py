"""ListPartitionReassignments (46), version 0: list partition moves that are under way."""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, message, string, struct


@message(key=46, kind="request", versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        "ListPartitionReassignmentsTopics", nullable=True, default=None
    )

    @struct()
    class ListPartitionReassignmentsTopics:
        name: str = string()
        partition_indexes: list[int] = array(int32)


@message(key=46, kind="response", versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    topics: list[OngoingTopicReassignment] = array("OngoingTopicReassignment")

    @struct()
    class OngoingTopicReassignment:
        name: str = string()
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = array(
            "OngoingPartitionReassignment"
        )

    @struct()
    class OngoingPartitionReassignment:
        partition_index: int = int32()
        replicas: list[int] = array(int32)
        adding_replicas: list[int] = array(int32)
        removing_replicas: list[int] = array(int32)
