"""ConsumerGroupDescribe (69), versions 0-1: describe consumer groups of the new protocol.

Notes: 1 member type.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int8, int16, int32, message, nested, string, struct, uuid


@message(key=69, kind="request", versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


@message(key=69, kind="response", versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
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
        assignor_name: str = string()
        members: list[ConsumerGroupDescribeResponse.Member] = array("Member")
        authorized_operations: int = int32(default=-0x80000000)

    @struct()
    class Member:
        member_id: str = string()
        instance_id: str | None = string(nullable=True, default=None)
        rack_id: str | None = string(nullable=True, default=None)
        member_epoch: int = int32()
        client_id: str = string()
        client_host: str = string()
        subscribed_topic_names: list[str] = array(string)
        subscribed_topic_regex: str | None = string(nullable=True, default=None)
        assignment: ConsumerGroupDescribeResponse.Assignment = nested("Assignment")
        target_assignment: ConsumerGroupDescribeResponse.Assignment = nested("Assignment")
        member_type: int = int8(since=1, default=-1, ignorable=True)

    @struct()
    class Assignment:
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = array("TopicPartitions")

    @struct()
    class TopicPartitions:
        topic_id: Uuid = uuid()
        topic_name: str = string()
        partitions: list[int] = array(int32)
