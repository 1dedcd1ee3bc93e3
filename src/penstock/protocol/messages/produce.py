"""Produce (0), versions 3-13: append record batches to partitions and say where they landed.

Notes: 5 tells the log start; 7 allows zstd; 8 names the records that were refused; 9 is flexible; 10 tags the current
leader onto errors; 11 knows TRANSACTION_ABORTABLE; 12 joins partitions to a transaction by itself; 13 names topics by
id.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import Buffer, array, int16, int32, int64, message, nested, records_, string, struct, uuid


@message(key=0, kind="request", versions="3-13", flexible="9+")
class ProduceRequest:
    transactional_id: str | None = string(nullable=True, default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array("TopicProduceData")

    @struct()
    class TopicProduceData:
        name: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partition_data: list[ProduceRequest.PartitionProduceData] = array("PartitionProduceData")

    @struct()
    class PartitionProduceData:
        index: int = int32()
        records: Buffer | None = records_(nullable=True)


@message(key=0, kind="response", versions="3-13", flexible="9+")
class ProduceResponse:
    responses: list[TopicProduceResponse] = array("TopicProduceResponse")
    throttle_time_ms: int = int32(ignorable=True)
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", since=10, tag=0)

    @struct()
    class TopicProduceResponse:
        name: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = array("PartitionProduceResponse")

    @struct(versions="10+")
    class NodeEndpoint:
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=True, default=None)

    @struct()
    class PartitionProduceResponse:
        index: int = int32()
        error_code: int = int16()
        base_offset: int = int64()
        log_append_time_ms: int = int64(default=-1, ignorable=True)
        log_start_offset: int = int64(since=5, default=-1, ignorable=True)
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = array(
            "BatchIndexAndErrorMessage", since=8, ignorable=True
        )
        error_message: str | None = string(since=8, nullable=True, default=None, ignorable=True)
        current_leader: ProduceResponse.LeaderIdAndEpoch = nested("LeaderIdAndEpoch", since=10, tag=0)

    @struct(versions="8+")
    class BatchIndexAndErrorMessage:
        batch_index: int = int32()
        batch_index_error_message: str | None = string(nullable=True, default=None)

    @struct(versions="10+")
    class LeaderIdAndEpoch:
        leader_id: int = int32(default=-1)
        leader_epoch: int = int32(default=-1)
