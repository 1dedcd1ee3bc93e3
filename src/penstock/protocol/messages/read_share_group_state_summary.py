"""ReadShareGroupStateSummary (87), versions 0-1: read start and epochs of share partitions; to the share coordinator.

Notes: 1 count of completed deliveries.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, int64, message, string, struct, uuid


@message(key=87, kind="request", versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest:
    group_id: str = string()
    topics: list[ReadStateSummaryData] = array("ReadStateSummaryData")

    @struct()
    class ReadStateSummaryData:
        topic_id: Uuid = uuid()
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition: int = int32()
        leader_epoch: int = int32()


@message(key=87, kind="response", versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    results: list[ReadStateSummaryResult] = array("ReadStateSummaryResult")

    @struct()
    class ReadStateSummaryResult:
        topic_id: Uuid = uuid()
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = array("PartitionResult")

    @struct()
    class PartitionResult:
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        state_epoch: int = int32()
        leader_epoch: int = int32()
        start_offset: int = int64()
        delivery_complete_count: int = int32(since=1, default=-1, ignorable=True)
