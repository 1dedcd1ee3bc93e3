"""SyncGroup (14), versions 0-5, of classic groups: the leader's assignment for everybody."""

from __future__ import annotations

from typing import Final

from penstock.coordinators.decision import Caller, Decision, Moment
from penstock.coordinators.groups.classic.answers import answer_sync
from penstock.coordinators.groups.classic.group import ClassicGroup, State
from penstock.coordinators.groups.classic.rebalance import arm_session
from penstock.model.errors import (
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
)
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_NAMED_SINCE: Final = 5


def names_protocol(request: SyncGroupRequest, api_version: int) -> bool:
    """Whether a sync has what its version asks for; it is wrong without, whoever sends it."""
    return api_version < PROTOCOL_NAMED_SINCE or None not in (request.protocol_type, request.protocol_name)


def check_sync(request: SyncGroupRequest, api_version: int) -> ErrorCode:
    """What can be said of a sync without looking at the group."""
    if not names_protocol(request, api_version):
        return INCONSISTENT_GROUP_PROTOCOL
    return NONE if request.group_id else INVALID_GROUP_ID


def decide_sync(group: ClassicGroup, request: SyncGroupRequest, caller: Caller, now: Moment) -> Decision:
    """The member's assignment, held back until the leader has sent it."""
    error = _check(group, request)
    if error is not NONE:
        return Decision(reply=SyncGroupResponse(error_code=error.code))
    member = group.members[request.member_id]
    group.pending_syncs.pop(member.id, None)
    if not group.pending_syncs:
        group.timers.cancel(group.sync_key)
    if group.state is State.STABLE:
        return Decision(reply=_assigned(group, member.assignment))
    out = Decision()
    # A second sync of the same member: the first one's sender has given up on it.
    answer_sync(member, SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS.code), out)
    member.sync_token = caller.token
    if group.leader == member.id:
        _assign(group, request, now, out)
    return out


def _check(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if group.state is State.EMPTY:
        return UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not NONE:
        return error
    if request.generation_id != group.generation:
        return ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol):
        return INCONSISTENT_GROUP_PROTOCOL
    return REBALANCE_IN_PROGRESS if group.state is State.PREPARING else NONE


def _differs(said: str | None, ours: str | None) -> bool:
    return said is not None and ours is not None and said != ours


def _assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type or None, protocol_name=group.protocol, assignment=assignment
    )


def _assign(group: ClassicGroup, request: SyncGroupRequest, now: Moment, out: Decision) -> None:
    """Writes the generation down and answers all who wait. The group is stable when the record is applied."""
    given = {each.member_id: bytes(each.assignment) for each in request.assignments}
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    out.records.append(group.record(assignments))
    for member in group.members.values():
        if answer_sync(member, _assigned(group, assignments[member.id]), out):
            arm_session(group, member, now)
