"""ShareGroupDescribe (77), version 1: describe share groups.

Notes: 0 was never stable.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int16, int32, message, nested, string, struct, uuid


@message(key=77, kind="request", versions="1", flexible="0+")
class ShareGroupDescribeRequest:
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


@message(key=77, kind="response", versions="1", flexible="0+")
class ShareGroupDescribeResponse:
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
        members: list[ShareGroupDescribeResponse.Member] = array("Member")
        authorized_operations: int = int32(default=-0x80000000)

    @struct()
    class Member:
        member_id: str = string()
        rack_id: str | None = string(nullable=True, default=None)
        member_epoch: int = int32()
        client_id: str = string()
        client_host: str = string()
        subscribed_topic_names: list[str] = array(string)
        assignment: ShareGroupDescribeResponse.Assignment = nested("Assignment")

    @struct()
    class Assignment:
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = array("TopicPartitions")

    @struct()
    class TopicPartitions:
        topic_id: Uuid = uuid()
        topic_name: str = string()
        partitions: list[int] = array(int32)
