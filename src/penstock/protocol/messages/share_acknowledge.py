"""ShareAcknowledge (79), versions 1-2: acknowledge records of share partitions.

Notes: 0 was never stable; 2 renewal of the acquisition.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int8, int16, int32, int64, message, nested, string, struct, uuid


@message(key=79, kind="request", versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    group_id: str | None = string(nullable=True, default=None)
    member_id: str | None = string(nullable=True)
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean(since=2)
    topics: list[AcknowledgeTopic] = array("AcknowledgeTopic")

    @struct()
    class AcknowledgeTopic:
        topic_id: Uuid = uuid()
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = array("AcknowledgePartition")

    @struct()
    class AcknowledgePartition:
        partition_index: int = int32()
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = array("AcknowledgementBatch")

    @struct()
    class AcknowledgementBatch:
        first_offset: int = int64()
        last_offset: int = int64()
        acknowledge_types: list[int] = array(int8)


@message(key=79, kind="response", versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    acquisition_lock_timeout_ms: int = int32(since=2, ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array("ShareAcknowledgeTopicResponse")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint")

    @struct()
    class ShareAcknowledgeTopicResponse:
        topic_id: Uuid = uuid()
        partitions: list[ShareAcknowledgeResponse.PartitionData] = array("PartitionData")

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
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = nested("LeaderIdAndEpoch")

    @struct()
    class LeaderIdAndEpoch:
        leader_id: int = int32()
        leader_epoch: int = int32()
