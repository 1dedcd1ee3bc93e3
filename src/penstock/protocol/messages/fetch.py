"""Fetch (1), versions 4-18: read record batches, as a consumer or as a follower.

Notes: 5 log start; 7 sessions; 9 leader epochs; 10 zstd; 11 rack and preferred replica; 12 flexible, truncation
hints; 13 topics by id; 14 knows tiered offsets; 15 replica state instead of replica id; 16 endpoints of new leaders;
17 replica directory; 18 the follower's high watermark.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import (
    Records,
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    records_,
    string,
    struct,
    uuid,
)


@message(key=1, kind="request", versions="4-18", flexible="12+")
class FetchRequest:
    cluster_id: str | None = string(since=12, nullable=True, default=None, tag=0, ignorable=True)
    replica_id: int = int32(until=14, default=-1)
    replica_state: ReplicaState = nested("ReplicaState", since=15, tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = int8(ignorable=True)
    session_id: int = int32(since=7, ignorable=True)
    session_epoch: int = int32(since=7, default=-1, ignorable=True)
    topics: list[FetchTopic] = array("FetchTopic")
    forgotten_topics_data: list[ForgottenTopic] = array("ForgottenTopic", since=7)
    rack_id: str = string(since=11, ignorable=True)

    @struct(versions="15+")
    class ReplicaState:
        replica_id: int = int32(default=-1)
        replica_epoch: int = int64(default=-1)

    @struct()
    class FetchTopic:
        topic: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partitions: list[FetchRequest.FetchPartition] = array("FetchPartition")

    @struct(versions="7+")
    class ForgottenTopic:
        topic: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partitions: list[int] = array(int32)

    @struct()
    class FetchPartition:
        partition: int = int32()
        current_leader_epoch: int = int32(since=9, default=-1, ignorable=True)
        fetch_offset: int = int64()
        last_fetched_epoch: int = int32(since=12, default=-1)
        log_start_offset: int = int64(since=5, default=-1, ignorable=True)
        partition_max_bytes: int = int32()
        replica_directory_id: Uuid = uuid(since=17, tag=0, ignorable=True)
        high_watermark: int = int64(since=18, default=0x7FFFFFFFFFFFFFFF, tag=1, ignorable=True)


@message(key=1, kind="response", versions="4-18", flexible="12+")
class FetchResponse:
    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16(since=7, ignorable=True)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array("FetchableTopicResponse")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", since=16, tag=0)

    @struct()
    class FetchableTopicResponse:
        topic: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partitions: list[FetchResponse.PartitionData] = array("PartitionData")

    @struct(versions="16+")
    class NodeEndpoint:
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=True, default=None)

    @struct()
    class PartitionData:
        partition_index: int = int32()
        error_code: int = int16()
        high_watermark: int = int64()
        last_stable_offset: int = int64(default=-1, ignorable=True)
        log_start_offset: int = int64(since=5, default=-1, ignorable=True)
        diverging_epoch: FetchResponse.EpochEndOffset = nested("EpochEndOffset", since=12, tag=0)
        current_leader: FetchResponse.LeaderIdAndEpoch = nested("LeaderIdAndEpoch", since=12, tag=1)
        snapshot_id: FetchResponse.SnapshotId = nested("SnapshotId", since=12, tag=2)
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = array(
            "AbortedTransaction", nullable=True, ignorable=True
        )
        preferred_read_replica: int = int32(since=11, default=-1)
        records: Records | None = records_(nullable=True)

    @struct(versions="12+")
    class EpochEndOffset:
        epoch: int = int32(default=-1)
        end_offset: int = int64(default=-1)

    @struct(versions="12+")
    class LeaderIdAndEpoch:
        leader_id: int = int32(default=-1)
        leader_epoch: int = int32(default=-1)

    @struct(versions="12+")
    class SnapshotId:
        end_offset: int = int64(default=-1)
        epoch: int = int32(default=-1)

    @struct()
    class AbortedTransaction:
        producer_id: int = int64()
        first_offset: int = int64()
