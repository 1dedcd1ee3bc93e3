"""What Kafka Streams clients put into the user data of their subscription.

The broker never reads it. Notes: 2 endpoints; 3-6 are as 2; 7 offset sums in place of task lists; 8 a byte that makes
every subscription unique; 9 an error code; 10 sums by task; 11 client tags.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, bytes_, int8, int32, int64, message, string, struct, uuid


@message(kind="data", versions="1-11", flexible="none")
class SubscriptionInfoData:
    version: int = int32()
    latest_supported_version: int = int32(since=3, default=-1)
    process_id: Uuid = uuid()
    prev_tasks: list[TaskId] = array("TaskId", until=6)
    standby_tasks: list[TaskId] = array("TaskId", until=6)
    user_end_point: bytes = bytes_(since=2)
    task_offset_sums: list[TaskOffsetSum] = array("TaskOffsetSum", since=7)
    unique_field: int = int8(since=8)
    error_code: int = int32(since=9)
    client_tags: list[ClientTag] = array("ClientTag", since=11)

    @struct(versions="1-6")
    class TaskId:
        topic_group_id: int = int32()
        partition: int = int32()

    @struct(versions="7+")
    class TaskOffsetSum:
        topic_group_id: int = int32()
        partition: int = int32(since=10)
        offset_sum: int = int64(since=10)
        named_topology: str | None = string(since=10, nullable=True)
        partition_to_offset_sum: list[SubscriptionInfoData.PartitionToOffsetSum] = array(
            "PartitionToOffsetSum", until=9
        )

    @struct(versions="11+")
    class ClientTag:
        key: bytes = bytes_()
        value: bytes = bytes_()

    @struct(versions="7-9")
    class PartitionToOffsetSum:
        partition: int = int32()
        offset_sum: int = int64()
