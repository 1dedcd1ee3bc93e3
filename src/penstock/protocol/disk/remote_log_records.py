"""Records of `__remote_log_metadata`: which segments are in remote storage."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, bytes_, int8, int32, int64, message, nested, string, struct, uuid


@message(key=0, kind="metadata", versions="0", flexible="0+")
class RemoteLogSegmentMetadataRecord:
    remote_log_segment_id: RemoteLogSegmentIdEntry = nested("RemoteLogSegmentIdEntry")
    start_offset: int = int64()
    end_offset: int = int64()
    broker_id: int = int32()
    max_timestamp_ms: int = int64()
    event_timestamp_ms: int = int64()
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array("SegmentLeaderEpochEntry")
    segment_size_in_bytes: int = int32()
    custom_metadata: bytes | None = bytes_(nullable=True, default=None)
    remote_log_segment_state: int = int8()
    txn_index_empty: bool = boolean(tag=0)

    @struct()
    class RemoteLogSegmentIdEntry:
        topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry = nested("TopicIdPartitionEntry")
        id: Uuid = uuid()

    @struct()
    class SegmentLeaderEpochEntry:
        leader_epoch: int = int32()
        offset: int = int64()

    @struct()
    class TopicIdPartitionEntry:
        name: str = string()
        id: Uuid = uuid()
        partition: int = int32()


@message(key=1, kind="metadata", versions="0", flexible="0+")
class RemoteLogSegmentMetadataUpdateRecord:
    remote_log_segment_id: RemoteLogSegmentIdEntry = nested("RemoteLogSegmentIdEntry")
    broker_id: int = int32()
    event_timestamp_ms: int = int64()
    custom_metadata: bytes | None = bytes_(nullable=True, default=None)
    remote_log_segment_state: int = int8()

    @struct()
    class RemoteLogSegmentIdEntry:
        topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry = nested("TopicIdPartitionEntry")
        id: Uuid = uuid()

    @struct()
    class TopicIdPartitionEntry:
        name: str = string()
        id: Uuid = uuid()
        partition: int = int32()


@message(key=2, kind="metadata", versions="0", flexible="0+")
class RemotePartitionDeleteMetadataRecord:
    topic_id_partition: TopicIdPartitionEntry = nested("TopicIdPartitionEntry")
    broker_id: int = int32()
    event_timestamp_ms: int = int64()
    remote_partition_delete_state: int = int8()

    @struct()
    class TopicIdPartitionEntry:
        name: str = string()
        id: Uuid = uuid()
        partition: int = int32()


@message(key=3, kind="metadata", versions="0", flexible="0+")
class RemoteLogSegmentMetadataSnapshotRecord:
    segment_id: Uuid = uuid()
    start_offset: int = int64()
    end_offset: int = int64()
    broker_id: int = int32()
    max_timestamp_ms: int = int64()
    event_timestamp_ms: int = int64()
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array("SegmentLeaderEpochEntry")
    segment_size_in_bytes: int = int32()
    custom_metadata: bytes | None = bytes_(nullable=True, default=None)
    remote_log_segment_state: int = int8()
    txn_index_empty: bool = boolean(tag=0)

    @struct()
    class SegmentLeaderEpochEntry:
        leader_epoch: int = int32()
        offset: int = int64()
