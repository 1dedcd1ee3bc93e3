"""OffsetDelete (47), version 0: forget positions of a group.

Notes: Never flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, message, string, struct


@message(key=47, kind="request", versions="0", flexible="none")
class OffsetDeleteRequest:
    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array("OffsetDeleteRequestTopic")

    @struct()
    class OffsetDeleteRequestTopic:
        name: str = string()
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = array("OffsetDeleteRequestPartition")

    @struct()
    class OffsetDeleteRequestPartition:
        partition_index: int = int32()


@message(key=47, kind="response", versions="0", flexible="none")
class OffsetDeleteResponse:
    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array("OffsetDeleteResponseTopic")

    @struct()
    class OffsetDeleteResponseTopic:
        name: str = string()
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = array("OffsetDeleteResponsePartition")

    @struct()
    class OffsetDeleteResponsePartition:
        partition_index: int = int32()
        error_code: int = int16()
