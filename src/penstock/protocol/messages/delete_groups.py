"""DeleteGroups (42), versions 0-2: delete groups.

Notes: 1 is as 0; 2 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, message, string, struct


@message(key=42, kind="request", versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    groups_names: list[str] = array(string)


@message(key=42, kind="response", versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array("DeletableGroupResult")

    @struct()
    class DeletableGroupResult:
        group_id: str = string()
        error_code: int = int16()
