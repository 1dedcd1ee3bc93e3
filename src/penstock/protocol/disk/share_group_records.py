"""Records of `__consumer_offsets` that hold share groups (keys 10 to 15)."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int8, int32, int64, message, string, struct, uuid


@message(key=10, kind="coordinator-key", versions="0", flexible="none")
class ShareGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message(key=10, kind="coordinator-value", versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    rack_id: str | None = string(nullable=True)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)


@message(key=11, kind="coordinator-key", versions="0", flexible="none")
class ShareGroupMetadataKey:
    group_id: str = string()


@message(key=11, kind="coordinator-value", versions="0", flexible="0+")
class ShareGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64()


@message(key=12, kind="coordinator-key", versions="0", flexible="none")
class ShareGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(key=12, kind="coordinator-value", versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


@message(key=13, kind="coordinator-key", versions="0", flexible="none")
class ShareGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@message(key=13, kind="coordinator-value", versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition] = array("TopicPartition")

    @struct()
    class TopicPartition:
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)


@message(key=14, kind="coordinator-key", versions="0", flexible="none")
class ShareGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message(key=14, kind="coordinator-value", versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array("TopicPartitions")

    @struct()
    class TopicPartitions:
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)


@message(key=15, kind="coordinator-key", versions="0", flexible="none")
class ShareGroupStatePartitionMetadataKey:
    group_id: str = string()


@message(key=15, kind="coordinator-value", versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    initializing_topics: list[TopicPartitionsInfo] = array("TopicPartitionsInfo")
    initialized_topics: list[TopicPartitionsInfo] = array("TopicPartitionsInfo")
    deleting_topics: list[TopicInfo] = array("TopicInfo")

    @struct()
    class TopicPartitionsInfo:
        topic_id: Uuid = uuid()
        topic_name: str = string()
        partitions: list[int] = array(int32)

    @struct()
    class TopicInfo:
        topic_id: Uuid = uuid()
        topic_name: str = string()
