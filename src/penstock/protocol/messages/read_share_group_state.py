"""ReadShareGroupState (84), version 0: read the state of share partitions; to the share coordinator."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int8, int16, int32, int64, message, string, struct, uuid


@message(key=84, kind="request", versions="0", flexible="0+")
class ReadShareGroupStateRequest:
    group_id: str = string()
    topics: list[ReadStateData] = array("ReadStateData")

    @struct()
    class ReadStateData:
        topic_id: Uuid = uuid()
        partitions: list[ReadShareGroupStateRequest.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition: int = int32()
        leader_epoch: int = int32()


@message(key=84, kind="response", versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    results: list[ReadStateResult] = array("ReadStateResult")

    @struct()
    class ReadStateResult:
        topic_id: Uuid = uuid()
        partitions: list[ReadShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    @struct()
    class PartitionResult:
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        state_epoch: int = int32()
        start_offset: int = int64()
        state_batches: list[ReadShareGroupStateResponse.StateBatch] = array("StateBatch")

    @struct()
    class StateBatch:
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()
