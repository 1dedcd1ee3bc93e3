"""DescribeTopicPartitions (75), version 0: describe topic partitions, page by page."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int16, int32, message, nested, string, struct, uuid


@message(key=75, kind="request", versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    topics: list[TopicRequest] = array("TopicRequest")
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = nested("Cursor", nullable=True, default=None)

    @struct()
    class TopicRequest:
        name: str = string()

    @struct()
    class Cursor:
        topic_name: str = string()
        partition_index: int = int32()


@message(key=75, kind="response", versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array("DescribeTopicPartitionsResponseTopic")
    next_cursor: Cursor | None = nested("Cursor", nullable=True, default=None)

    @struct()
    class DescribeTopicPartitionsResponseTopic:
        error_code: int = int16()
        name: str | None = string(nullable=True)
        topic_id: Uuid = uuid(ignorable=True)
        is_internal: bool = boolean(ignorable=True)
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = array(
            "DescribeTopicPartitionsResponsePartition"
        )
        topic_authorized_operations: int = int32(default=-0x80000000)

    @struct()
    class Cursor:
        topic_name: str = string()
        partition_index: int = int32()

    @struct()
    class DescribeTopicPartitionsResponsePartition:
        error_code: int = int16()
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32(default=-1, ignorable=True)
        replica_nodes: list[int] = array(int32)
        isr_nodes: list[int] = array(int32)
        eligible_leader_replicas: list[int] | None = array(int32, nullable=True, default=None)
        last_known_elr: list[int] | None = array(int32, nullable=True, default=None)
        offline_replicas: list[int] = array(int32, ignorable=True)
