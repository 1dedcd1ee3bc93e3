"""Requests of a membership as an older version wants them. Pure."""

from __future__ import annotations

from typing import Any

from penstock.protocol.messages.leave_group import LeaveGroupRequest

_LEAVE_SEVERAL = 3


def fitted(request: Any, version: int) -> Any:
    """The same request for `version`. Other differences are fields that a version lacks and may go without."""
    if isinstance(request, LeaveGroupRequest) and version < _LEAVE_SEVERAL:
        return LeaveGroupRequest(group_id=request.group_id, member_id=request.members[0].member_id)
    return request
