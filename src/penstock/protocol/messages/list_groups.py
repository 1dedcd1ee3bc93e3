"""ListGroups (16), versions 0-5: list the groups that a broker coordinates.

Notes: 1 throttle time; 3 flexible; 4 filter by state; 5 filter by type.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, message, string, struct


@message(key=16, kind="request", versions="0-5", flexible="3+")
class ListGroupsRequest:
    states_filter: list[str] = array(string, since=4)
    types_filter: list[str] = array(string, since=5)


@message(key=16, kind="response", versions="0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array("ListedGroup")

    @struct()
    class ListedGroup:
        group_id: str = string()
        protocol_type: str = string()
        group_state: str = string(since=4, ignorable=True)
        group_type: str = string(since=5, ignorable=True)
