"""TxnOffsetCommit (28), versions 0-5: store a group's positions as part of a transaction.

Notes: 2 leader epochs; 3 flexible, fences by member and generation; 4 knows TRANSACTION_ABORTABLE; 5 joins the
offsets to the transaction by itself.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, int64, message, string, struct


@message(key=28, kind="request", versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(since=3, default=-1)
    member_id: str = string(since=3)
    group_instance_id: str | None = string(since=3, nullable=True, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array("TxnOffsetCommitRequestTopic")

    @struct()
    class TxnOffsetCommitRequestTopic:
        name: str = string(ignorable=True)
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = array(
            "TxnOffsetCommitRequestPartition"
        )

    @struct()
    class TxnOffsetCommitRequestPartition:
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(since=2, default=-1, ignorable=True)
        committed_metadata: str | None = string(nullable=True)


@message(key=28, kind="response", versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array("TxnOffsetCommitResponseTopic")

    @struct()
    class TxnOffsetCommitResponseTopic:
        name: str = string(ignorable=True)
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = array(
            "TxnOffsetCommitResponsePartition"
        )

    @struct()
    class TxnOffsetCommitResponsePartition:
        partition_index: int = int32()
        error_code: int = int16()
