"""InitializeShareGroupState (83), version 0: create the state of share partitions; to the share coordinator."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, int64, message, string, struct, uuid


@message(key=83, kind="request", versions="0", flexible="0+")
class InitializeShareGroupStateRequest:
    group_id: str = string()
    topics: list[InitializeStateData] = array("InitializeStateData")

    @struct()
    class InitializeStateData:
        topic_id: Uuid = uuid()
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition: int = int32()
        state_epoch: int = int32()
        start_offset: int = int64()


@message(key=83, kind="response", versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    results: list[InitializeStateResult] = array("InitializeStateResult")

    @struct()
    class InitializeStateResult:
        topic_id: Uuid = uuid()
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    @struct()
    class PartitionResult:
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
