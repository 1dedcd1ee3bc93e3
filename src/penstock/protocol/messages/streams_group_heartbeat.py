"""StreamsGroupHeartbeat (88), version 0: join, keep and leave a streams group."""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int8, int16, int32, int64, message, nested, string, struct, uint16


@message(key=88, kind="request", versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest:
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(nullable=True, default=None)
    rack_id: str | None = string(nullable=True, default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    topology: Topology | None = nested("Topology", nullable=True, default=None)
    active_tasks: list[TaskIds] | None = array("TaskIds", nullable=True, default=None)
    standby_tasks: list[TaskIds] | None = array("TaskIds", nullable=True, default=None)
    warmup_tasks: list[TaskIds] | None = array("TaskIds", nullable=True, default=None)
    process_id: str | None = string(nullable=True, default=None)
    user_endpoint: Endpoint | None = nested("Endpoint", nullable=True, default=None)
    client_tags: list[KeyValue] | None = array("KeyValue", nullable=True, default=None)
    task_offsets: list[TaskOffset] | None = array("TaskOffset", nullable=True, default=None)
    task_end_offsets: list[TaskOffset] | None = array("TaskOffset", nullable=True, default=None)
    shutdown_application: bool = boolean()

    @struct()
    class Topology:
        epoch: int = int32()
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = array("Subtopology")

    @struct()
    class TaskIds:
        subtopology_id: str = string()
        partitions: list[int] = array(int32)

    @struct()
    class Endpoint:
        host: str = string()
        port: int = uint16()

    @struct()
    class KeyValue:
        key: str = string()
        value: str = string()

    @struct()
    class TaskOffset:
        subtopology_id: str = string()
        partition: int = int32()
        offset: int = int64()

    @struct()
    class Subtopology:
        subtopology_id: str = string()
        source_topics: list[str] = array(string)
        source_topic_regex: list[str] = array(string)
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = array("TopicInfo")
        repartition_sink_topics: list[str] = array(string)
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = array("TopicInfo")
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = array("CopartitionGroup")

    @struct()
    class TopicInfo:
        name: str = string()
        partitions: int = int32()
        replication_factor: int = int16()
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = array("KeyValue")

    @struct()
    class CopartitionGroup:
        source_topics: list[int] = array(int16)
        source_topic_regex: list[int] = array(int16)
        repartition_source_topics: list[int] = array(int16)


@message(key=88, kind="response", versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32()
    status: list[Status] | None = array("Status", nullable=True)
    active_tasks: list[TaskIds] | None = array("TaskIds", nullable=True, default=None)
    standby_tasks: list[TaskIds] | None = array("TaskIds", nullable=True, default=None)
    warmup_tasks: list[TaskIds] | None = array("TaskIds", nullable=True, default=None)
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        "EndpointToPartitions", nullable=True, default=None
    )

    @struct()
    class Status:
        status_code: int = int8()
        status_detail: str = string()

    @struct()
    class TaskIds:
        subtopology_id: str = string()
        partitions: list[int] = array(int32)

    @struct()
    class EndpointToPartitions:
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = nested("Endpoint")
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = array("TopicPartition")
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = array("TopicPartition")

    @struct()
    class Endpoint:
        host: str = string()
        port: int = uint16()

    @struct()
    class TopicPartition:
        topic: str = string()
        partitions: list[int] = array(int32)
