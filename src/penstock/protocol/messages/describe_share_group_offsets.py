"""DescribeShareGroupOffsets (90), versions 0-1: read the start offsets of share groups.

Notes: 1 lag.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, int64, message, string, struct, uuid


@message(key=90, kind="request", versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    groups: list[DescribeShareGroupOffsetsRequestGroup] = array("DescribeShareGroupOffsetsRequestGroup")

    @struct()
    class DescribeShareGroupOffsetsRequestGroup:
        group_id: str = string()
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = array(
            "DescribeShareGroupOffsetsRequestTopic", nullable=True
        )

    @struct()
    class DescribeShareGroupOffsetsRequestTopic:
        topic_name: str = string()
        partitions: list[int] = array(int32)


@message(key=90, kind="response", versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array("DescribeShareGroupOffsetsResponseGroup")

    @struct()
    class DescribeShareGroupOffsetsResponseGroup:
        group_id: str = string()
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = array(
            "DescribeShareGroupOffsetsResponseTopic"
        )
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    @struct()
    class DescribeShareGroupOffsetsResponseTopic:
        topic_name: str = string()
        topic_id: Uuid = uuid()
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = array(
            "DescribeShareGroupOffsetsResponsePartition"
        )

    @struct()
    class DescribeShareGroupOffsetsResponsePartition:
        partition_index: int = int32()
        start_offset: int = int64()
        leader_epoch: int = int32()
        lag: int = int64(since=1, default=-1, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
