"""WriteShareGroupState (85), versions 0-1: write the state of share partitions; to the share coordinator.

Notes: 1 count of completed deliveries.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int8, int16, int32, int64, message, string, struct, uuid


@message(key=85, kind="request", versions="0-1", flexible="0+")
class WriteShareGroupStateRequest:
    group_id: str = string()
    topics: list[WriteStateData] = array("WriteStateData")

    @struct()
    class WriteStateData:
        topic_id: Uuid = uuid()
        partitions: list[WriteShareGroupStateRequest.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition: int = int32()
        state_epoch: int = int32()
        leader_epoch: int = int32()
        start_offset: int = int64()
        delivery_complete_count: int = int32(since=1, default=-1, ignorable=True)
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = array("StateBatch")

    @struct()
    class StateBatch:
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()


@message(key=85, kind="response", versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    results: list[WriteStateResult] = array("WriteStateResult")

    @struct()
    class WriteStateResult:
        topic_id: Uuid = uuid()
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    @struct()
    class PartitionResult:
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
