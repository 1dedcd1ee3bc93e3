"""DeleteShareGroupState (86), version 0: delete the state of share partitions; to the share coordinator."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, message, string, struct, uuid


@message(key=86, kind="request", versions="0", flexible="0+")
class DeleteShareGroupStateRequest:
    group_id: str = string()
    topics: list[DeleteStateData] = array("DeleteStateData")

    @struct()
    class DeleteStateData:
        topic_id: Uuid = uuid()
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition: int = int32()


@message(key=86, kind="response", versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    results: list[DeleteStateResult] = array("DeleteStateResult")

    @struct()
    class DeleteStateResult:
        topic_id: Uuid = uuid()
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    @struct()
    class PartitionResult:
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
