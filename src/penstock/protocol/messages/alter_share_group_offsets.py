"""AlterShareGroupOffsets (91), version 0: set the start offsets of share groups."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, int64, message, string, struct, uuid


@message(key=91, kind="request", versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest:
    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = array("AlterShareGroupOffsetsRequestTopic")

    @struct()
    class AlterShareGroupOffsetsRequestTopic:
        topic_name: str = string()
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = array(
            "AlterShareGroupOffsetsRequestPartition"
        )

    @struct()
    class AlterShareGroupOffsetsRequestPartition:
        partition_index: int = int32()
        start_offset: int = int64()


@message(key=91, kind="response", versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array("AlterShareGroupOffsetsResponseTopic")

    @struct()
    class AlterShareGroupOffsetsResponseTopic:
        topic_name: str = string()
        topic_id: Uuid = uuid()
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = array(
            "AlterShareGroupOffsetsResponsePartition"
        )

    @struct()
    class AlterShareGroupOffsetsResponsePartition:
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
