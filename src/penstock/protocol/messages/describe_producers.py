"""DescribeProducers (61), version 0: describe the producers that are active in partitions."""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, int64, message, string, struct


@message(key=61, kind="request", versions="0", flexible="0+")
class DescribeProducersRequest:
    topics: list[TopicRequest] = array("TopicRequest")

    @struct()
    class TopicRequest:
        name: str = string()
        partition_indexes: list[int] = array(int32)


@message(key=61, kind="response", versions="0", flexible="0+")
class DescribeProducersResponse:
    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array("TopicResponse")

    @struct()
    class TopicResponse:
        name: str = string()
        partitions: list[DescribeProducersResponse.PartitionResponse] = array("PartitionResponse")

    @struct()
    class PartitionResponse:
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        active_producers: list[DescribeProducersResponse.ProducerState] = array("ProducerState")

    @struct()
    class ProducerState:
        producer_id: int = int64()
        producer_epoch: int = int32()
        last_sequence: int = int32(default=-1)
        last_timestamp: int = int64(default=-1)
        coordinator_epoch: int = int32()
        current_txn_start_offset: int = int64(default=-1)
