"""FetchSnapshot (59), versions 0-1: read a piece of a metadata snapshot; Raft.

Notes: 1 directory id and endpoints.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import (
    Records,
    array,
    int16,
    int32,
    int64,
    message,
    nested,
    records_,
    string,
    struct,
    uint16,
    uuid,
)


@message(key=59, kind="request", versions="0-1", flexible="0+")
class FetchSnapshotRequest:
    cluster_id: str | None = string(nullable=True, default=None, tag=0)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=0x7FFFFFFF)
    topics: list[TopicSnapshot] = array("TopicSnapshot")

    @struct()
    class TopicSnapshot:
        name: str = string()
        partitions: list[FetchSnapshotRequest.PartitionSnapshot] = array("PartitionSnapshot")

    @struct()
    class PartitionSnapshot:
        partition: int = int32()
        current_leader_epoch: int = int32()
        snapshot_id: FetchSnapshotRequest.SnapshotId = nested("SnapshotId")
        position: int = int64()
        replica_directory_id: Uuid = uuid(since=1, tag=0, ignorable=True)

    @struct()
    class SnapshotId:
        end_offset: int = int64()
        epoch: int = int32()


@message(key=59, kind="response", versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    topics: list[TopicSnapshot] = array("TopicSnapshot")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", since=1, tag=0)

    @struct()
    class TopicSnapshot:
        name: str = string()
        partitions: list[FetchSnapshotResponse.PartitionSnapshot] = array("PartitionSnapshot")

    @struct(versions="1+")
    class NodeEndpoint:
        node_id: int = int32()
        host: str = string()
        port: int = uint16()

    @struct()
    class PartitionSnapshot:
        index: int = int32()
        error_code: int = int16()
        snapshot_id: FetchSnapshotResponse.SnapshotId = nested("SnapshotId")
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = nested("LeaderIdAndEpoch", tag=0)
        size: int = int64()
        position: int = int64()
        unaligned_records: Records = records_(default=b"")

    @struct()
    class SnapshotId:
        end_offset: int = int64()
        epoch: int = int32()

    @struct()
    class LeaderIdAndEpoch:
        leader_id: int = int32()
        leader_epoch: int = int32()
