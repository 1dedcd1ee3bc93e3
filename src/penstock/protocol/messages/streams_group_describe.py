"""StreamsGroupDescribe (89), version 0: describe streams groups."""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int16, int32, int64, message, nested, string, struct, uint16


@message(key=89, kind="request", versions="0", flexible="0+")
class StreamsGroupDescribeRequest:
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


@message(key=89, kind="response", versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array("DescribedGroup")

    @struct()
    class DescribedGroup:
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        topology: StreamsGroupDescribeResponse.Topology | None = nested("Topology", nullable=True, default=None)
        members: list[StreamsGroupDescribeResponse.Member] = array("Member")
        authorized_operations: int = int32(default=-0x80000000)

    @struct()
    class Topology:
        epoch: int = int32()
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = array(
            "Subtopology", nullable=True, default=None
        )

    @struct()
    class Member:
        member_id: str = string()
        member_epoch: int = int32()
        instance_id: str | None = string(nullable=True, default=None)
        rack_id: str | None = string(nullable=True, default=None)
        client_id: str = string()
        client_host: str = string()
        topology_epoch: int = int32()
        process_id: str = string()
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = nested("Endpoint", nullable=True, default=None)
        client_tags: list[StreamsGroupDescribeResponse.KeyValue] = array("KeyValue")
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = array("TaskOffset")
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = array("TaskOffset")
        assignment: StreamsGroupDescribeResponse.Assignment = nested("Assignment")
        target_assignment: StreamsGroupDescribeResponse.Assignment = nested("Assignment")
        is_classic: bool = boolean()

    @struct()
    class Subtopology:
        subtopology_id: str = string()
        source_topics: list[str] = array(string)
        repartition_sink_topics: list[str] = array(string)
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = array("TopicInfo")
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = array("TopicInfo")

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
    class Assignment:
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = array("TaskIds")
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = array("TaskIds")
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = array("TaskIds")

    @struct()
    class TopicInfo:
        name: str = string()
        partitions: int = int32()
        replication_factor: int = int16()
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = array("KeyValue")

    @struct()
    class TaskIds:
        subtopology_id: str = string()
        partitions: list[int] = array(int32)
