"""SyncGroup (14), versions 0-5: hand out the leader's assignment to the members.

Notes: 1 throttle time; 3 static members; 4 flexible; 5 checks protocol type and name.
"""

from __future__ import annotations

from penstock.protocol.wire import array, bytes_, int16, int32, message, string, struct


@message(key=14, kind="request", versions="0-5", flexible="4+")
class SyncGroupRequest:
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable=True, default=None)
    protocol_type: str | None = string(since=5, nullable=True, default=None, ignorable=True)
    protocol_name: str | None = string(since=5, nullable=True, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array("SyncGroupRequestAssignment")

    @struct()
    class SyncGroupRequestAssignment:
        member_id: str = string()
        assignment: bytes = bytes_()


@message(key=14, kind="response", versions="0-5", flexible="4+")
class SyncGroupResponse:
    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(since=5, nullable=True, default=None, ignorable=True)
    protocol_name: str | None = string(since=5, nullable=True, default=None, ignorable=True)
    assignment: bytes = bytes_()
