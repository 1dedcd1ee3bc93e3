"""OffsetForLeaderEpoch (23), versions 2-4: find where a leader epoch ended in the log.

Notes: 3 replica id; 4 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, int64, message, string, struct


@message(key=23, kind="request", versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    replica_id: int = int32(since=3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array("OffsetForLeaderTopic")

    @struct()
    class OffsetForLeaderTopic:
        topic: str = string()
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = array("OffsetForLeaderPartition")

    @struct()
    class OffsetForLeaderPartition:
        partition: int = int32()
        current_leader_epoch: int = int32(default=-1, ignorable=True)
        leader_epoch: int = int32()


@message(key=23, kind="response", versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array("OffsetForLeaderTopicResult")

    @struct()
    class OffsetForLeaderTopicResult:
        topic: str = string()
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = array("EpochEndOffset")

    @struct()
    class EpochEndOffset:
        error_code: int = int16()
        partition: int = int32()
        leader_epoch: int = int32(default=-1, ignorable=True)
        end_offset: int = int64(default=-1)
