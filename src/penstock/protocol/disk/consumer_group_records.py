"""Records of `__consumer_offsets` that hold consumer groups of the new protocol (keys 3 to 8 and 16)."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, bytes_, int8, int32, int64, message, nested, string, struct, uuid


@message(key=3, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupMetadataKey:
    group_id: str = string()


@message(key=3, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


@message(key=4, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupPartitionMetadataKey:
    group_id: str = string()


@message(key=4, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    topics: list[TopicMetadata] = array("TopicMetadata")

    @struct()
    class TopicMetadata:
        topic_id: Uuid = uuid()
        topic_name: str = string()
        num_partitions: int = int32()
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = array("PartitionMetadata")

    @struct()
    class PartitionMetadata:
        partition: int = int32()
        racks: list[str] = array(string)


@message(key=5, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message(key=5, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = string(nullable=True)
    rack_id: str | None = string(nullable=True)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable=True)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable=True)
    classic_member_metadata: ClassicMemberMetadata | None = nested("ClassicMemberMetadata", nullable=True, tag=0)

    @struct()
    class ClassicMemberMetadata:
        session_timeout_ms: int = int32()
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = array("ClassicProtocol")

    @struct()
    class ClassicProtocol:
        name: str = string()
        metadata: bytes = bytes_()


@message(key=6, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(key=6, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


@message(key=7, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@message(key=7, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition] = array("TopicPartition")

    @struct()
    class TopicPartition:
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)


@message(key=8, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message(key=8, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array("TopicPartitions")
    partitions_pending_revocation: list[TopicPartitions] = array("TopicPartitions")

    @struct()
    class TopicPartitions:
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)
        assignment_epochs: list[int] | None = array(int32, nullable=True, tag=0)


@message(key=16, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupRegularExpressionKey:
    group_id: str = string()
    regular_expression: str = string()


@message(key=16, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()
