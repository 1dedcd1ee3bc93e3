"""LeaveGroup (13), versions 0-5: leave a classic group.

Notes: 1 throttle time; 3 several members in one request, named by member or instance id; 4 flexible; 5 reason.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, message, string, struct


@message(key=13, kind="request", versions="0-5", flexible="4+")
class LeaveGroupRequest:
    group_id: str = string()
    member_id: str = string(until=2)
    members: list[MemberIdentity] = array("MemberIdentity", since=3)

    @struct(versions="3+")
    class MemberIdentity:
        member_id: str = string()
        group_instance_id: str | None = string(nullable=True, default=None)
        reason: str | None = string(since=5, nullable=True, default=None, ignorable=True)


@message(key=13, kind="response", versions="0-5", flexible="4+")
class LeaveGroupResponse:
    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array("MemberResponse", since=3)

    @struct(versions="3+")
    class MemberResponse:
        member_id: str = string()
        group_instance_id: str | None = string(nullable=True)
        error_code: int = int16()
