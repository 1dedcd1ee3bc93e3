"""Records of `__consumer_offsets` that hold streams groups (keys 17 to 23)."""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, int64, message, nested, string, struct, uint16


@message(key=17, kind="coordinator-key", versions="0", flexible="none")
class StreamsGroupMetadataKey:
    group_id: str = string()


@message(key=17, kind="coordinator-value", versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = array("LastAssignmentConfig", nullable=True, tag=1)

    @struct()
    class LastAssignmentConfig:
        key: str = string()
        value: str = string()


@message(key=19, kind="coordinator-key", versions="0", flexible="none")
class StreamsGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message(key=19, kind="coordinator-value", versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    instance_id: str | None = string(nullable=True)
    rack_id: str | None = string(nullable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested("Endpoint", nullable=True, default=None)
    client_tags: list[KeyValue] = array("KeyValue")

    @struct()
    class Endpoint:
        host: str = string()
        port: int = uint16()

    @struct()
    class KeyValue:
        key: str = string()
        value: str = string()


@message(key=20, kind="coordinator-key", versions="0", flexible="none")
class StreamsGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(key=20, kind="coordinator-value", versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


@message(key=21, kind="coordinator-key", versions="0", flexible="none")
class StreamsGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@message(key=21, kind="coordinator-value", versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    active_tasks: list[TaskIds] = array("TaskIds")
    standby_tasks: list[TaskIds] = array("TaskIds")
    warmup_tasks: list[TaskIds] = array("TaskIds")

    @struct()
    class TaskIds:
        subtopology_id: str = string()
        partitions: list[int] = array(int32)


@message(key=22, kind="coordinator-key", versions="0", flexible="none")
class StreamsGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message(key=22, kind="coordinator-value", versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: list[TaskIds] = array("TaskIds")
    standby_tasks: list[TaskIds] = array("TaskIds")
    warmup_tasks: list[TaskIds] = array("TaskIds")
    active_tasks_pending_revocation: list[TaskIds] = array("TaskIds")
    standby_tasks_pending_revocation: list[TaskIds] = array("TaskIds")
    warmup_tasks_pending_revocation: list[TaskIds] = array("TaskIds")

    @struct()
    class TaskIds:
        subtopology_id: str = string()
        partitions: list[int] = array(int32)
        assignment_epochs: list[int] | None = array(int32, nullable=True, tag=0)


@message(key=23, kind="coordinator-key", versions="0", flexible="none")
class StreamsGroupTopologyKey:
    group_id: str = string()


@message(key=23, kind="coordinator-value", versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    epoch: int = int32()
    subtopologies: list[Subtopology] = array("Subtopology")

    @struct()
    class Subtopology:
        subtopology_id: str = string()
        source_topics: list[str] = array(string)
        source_topic_regex: list[str] = array(string)
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = array("TopicInfo")
        repartition_sink_topics: list[str] = array(string)
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = array("TopicInfo")
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = array("CopartitionGroup")

    @struct()
    class TopicInfo:
        name: str = string()
        partitions: int = int32()
        replication_factor: int = int16()
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = array("TopicConfig")

    @struct()
    class CopartitionGroup:
        source_topics: list[int] = array(int16)
        source_topic_regex: list[int] = array(int16)
        repartition_source_topics: list[int] = array(int16)

    @struct()
    class TopicConfig:
        key: str = string()
        value: str = string()
