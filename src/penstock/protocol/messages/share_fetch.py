"""ShareFetch (78), versions 1-2: acquire records of share partitions and acknowledge earlier ones.

Notes: 0 was never stable; 2 acquire mode and renewal.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import (
    Records,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    records_,
    string,
    struct,
    uuid,
)


@message(key=78, kind="request", versions="1-2", flexible="0+")
class ShareFetchRequest:
    group_id: str | None = string(nullable=True, default=None)
    member_id: str | None = string(nullable=True)
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8(since=2, ignorable=True)
    is_renew_ack: bool = boolean(since=2)
    topics: list[FetchTopic] = array("FetchTopic")
    forgotten_topics_data: list[ForgottenTopic] = array("ForgottenTopic")

    @struct()
    class FetchTopic:
        topic_id: Uuid = uuid()
        partitions: list[ShareFetchRequest.FetchPartition] = array("FetchPartition")

    @struct()
    class ForgottenTopic:
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)

    @struct()
    class FetchPartition:
        partition_index: int = int32()
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = array("AcknowledgementBatch")

    @struct()
    class AcknowledgementBatch:
        first_offset: int = int64()
        last_offset: int = int64()
        acknowledge_types: list[int] = array(int8)


@message(key=78, kind="response", versions="1-2", flexible="0+")
class ShareFetchResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    acquisition_lock_timeout_ms: int = int32()
    responses: list[ShareFetchableTopicResponse] = array("ShareFetchableTopicResponse")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint")

    @struct()
    class ShareFetchableTopicResponse:
        topic_id: Uuid = uuid()
        partitions: list[ShareFetchResponse.PartitionData] = array("PartitionData")

    @struct()
    class NodeEndpoint:
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=True, default=None)

    @struct()
    class PartitionData:
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        acknowledge_error_code: int = int16()
        acknowledge_error_message: str | None = string(nullable=True, default=None)
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = nested("LeaderIdAndEpoch")
        records: Records = records_(default=b"")
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = array("AcquiredRecords")

    @struct()
    class LeaderIdAndEpoch:
        leader_id: int = int32()
        leader_epoch: int = int32()

    @struct()
    class AcquiredRecords:
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_count: int = int16()
