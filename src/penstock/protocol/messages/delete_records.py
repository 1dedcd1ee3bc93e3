"""DeleteRecords (21), versions 0-2: move the start of partitions up, so that records before it disappear.

Notes: 1 is as 0; 2 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, int64, message, string, struct


@message(key=21, kind="request", versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic] = array("DeleteRecordsTopic")
    timeout_ms: int = int32()

    @struct()
    class DeleteRecordsTopic:
        name: str = string()
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = array("DeleteRecordsPartition")

    @struct()
    class DeleteRecordsPartition:
        partition_index: int = int32()
        offset: int = int64()


@message(key=21, kind="response", versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array("DeleteRecordsTopicResult")

    @struct()
    class DeleteRecordsTopicResult:
        name: str = string()
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = array("DeleteRecordsPartitionResult")

    @struct()
    class DeleteRecordsPartitionResult:
        partition_index: int = int32()
        low_watermark: int = int64()
        error_code: int = int16()
