"""DescribeGroups (15), versions 0-6: describe classic groups and their members.

Notes: 1 throttle time; 3 authorized operations; 4 static members; 5 flexible; 6 error text and GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, bytes_, int16, int32, message, string, struct


@message(key=15, kind="request", versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean(since=3)


@message(key=15, kind="response", versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    throttle_time_ms: int = int32(since=1, ignorable=True)
    groups: list[DescribedGroup] = array("DescribedGroup")

    @struct()
    class DescribedGroup:
        error_code: int = int16()
        error_message: str | None = string(since=6, nullable=True, default=None)
        group_id: str = string()
        group_state: str = string()
        protocol_type: str = string()
        protocol_data: str = string()
        members: list[DescribeGroupsResponse.DescribedGroupMember] = array("DescribedGroupMember")
        authorized_operations: int = int32(since=3, default=-0x80000000)

    @struct()
    class DescribedGroupMember:
        member_id: str = string()
        group_instance_id: str | None = string(since=4, nullable=True, default=None, ignorable=True)
        client_id: str = string()
        client_host: str = string()
        member_metadata: bytes = bytes_()
        member_assignment: bytes = bytes_()
