"""Heartbeat (12), versions 0-4: say that a member is alive, and hear whether to rejoin.

Notes: 1 throttle time; 3 static members; 4 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import int16, int32, message, string


@message(key=12, kind="request", versions="0-4", flexible="4+")
class HeartbeatRequest:
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable=True, default=None)


@message(key=12, kind="response", versions="0-4", flexible="4+")
class HeartbeatResponse:
    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
