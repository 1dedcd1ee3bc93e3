"""OffsetCommit (8), versions 2-10: store the positions of a group.

Notes: 5 drops the retention time; 6 leader epoch of the position; 7 static members; 8 flexible; 9 takes the epoch of
the consumer protocol in place of the generation; 10 topics by id.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, int64, message, string, struct, uuid


@message(key=8, kind="request", versions="2-10", flexible="8+")
class OffsetCommitRequest:
    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1, ignorable=True)
    member_id: str = string(ignorable=True)
    group_instance_id: str | None = string(since=7, nullable=True, default=None)
    retention_time_ms: int = int64(until=4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array("OffsetCommitRequestTopic")

    @struct()
    class OffsetCommitRequestTopic:
        name: str = string(until=9, ignorable=True)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = array("OffsetCommitRequestPartition")

    @struct()
    class OffsetCommitRequestPartition:
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(since=6, default=-1, ignorable=True)
        committed_metadata: str | None = string(nullable=True)


@message(key=8, kind="response", versions="2-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array("OffsetCommitResponseTopic")

    @struct()
    class OffsetCommitResponseTopic:
        name: str = string(until=9, ignorable=True)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = array("OffsetCommitResponsePartition")

    @struct()
    class OffsetCommitResponsePartition:
        partition_index: int = int32()
        error_code: int = int16()
