"""DeleteShareGroupOffsets (92), version 0: forget the start offsets of share groups."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, message, string, struct, uuid


@message(key=92, kind="request", versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array("DeleteShareGroupOffsetsRequestTopic")

    @struct()
    class DeleteShareGroupOffsetsRequestTopic:
        topic_name: str = string()


@message(key=92, kind="response", versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array("DeleteShareGroupOffsetsResponseTopic")

    @struct()
    class DeleteShareGroupOffsetsResponseTopic:
        topic_name: str = string()
        topic_id: Uuid = uuid()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
