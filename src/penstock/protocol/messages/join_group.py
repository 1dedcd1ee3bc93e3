"""JoinGroup (11), versions 0-9: join a classic group; the answer comes when the whole group has joined.

Notes: 1 rebalance timeout; 2 throttle time; 4 makes a new member come twice, the second time with its id; 5 static
members; 6 flexible; 7 protocol type; 8 reason; 9 may skip the assignment.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, bytes_, int16, int32, message, string, struct


@message(key=11, kind="request", versions="0-9", flexible="6+")
class JoinGroupRequest:
    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(since=1, default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable=True, default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array("JoinGroupRequestProtocol")
    reason: str | None = string(since=8, nullable=True, default=None, ignorable=True)

    @struct()
    class JoinGroupRequestProtocol:
        name: str = string()
        metadata: bytes = bytes_()


@message(key=11, kind="response", versions="0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: int = int32(since=2, ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(since=7, nullable=True, default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean(since=9)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array("JoinGroupResponseMember")

    @struct()
    class JoinGroupResponseMember:
        member_id: str = string()
        group_instance_id: str | None = string(since=5, nullable=True, default=None, ignorable=True)
        metadata: bytes = bytes_()
