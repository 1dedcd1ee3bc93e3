"""LeaveGroup (13), versions 0-5, of classic groups: members leave, or an admin removes them."""

from __future__ import annotations

from typing import Final

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.groups.classic.group import ClassicGroup, State
from penstock.coordinators.groups.classic.rebalance import complete_if_joined, prepare, remove_member
from penstock.coordinators.groups.table import GroupTable
from penstock.model.errors import NONE, UNKNOWN_MEMBER_ID, ErrorCode
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

SEVERAL_MEMBERS_SINCE: Final = 3


def leaving_members(request: LeaveGroupRequest, api_version: int) -> list[LeaveGroupRequest.MemberIdentity]:
    """Who is to leave. Old versions name one member."""
    if api_version < SEVERAL_MEMBERS_SINCE:
        return [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    return request.members


def left_reply(
    members: list[LeaveGroupRequest.MemberIdentity], errors: list[ErrorCode], api_version: int
) -> LeaveGroupResponse:
    """Says how it went for each; old versions have room for one error."""
    if api_version < SEVERAL_MEMBERS_SINCE:
        return LeaveGroupResponse(error_code=errors[0].code)
    return LeaveGroupResponse(
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error.code
            )
            for member, error in zip(members, errors, strict=True)
        ]
    )


def decide_leave(
    table: GroupTable, group: ClassicGroup, request: LeaveGroupRequest, api_version: int, now: Moment
) -> Decision:
    """Removes the members at once; the others rebalance."""
    out = Decision()
    members = leaving_members(request, api_version)
    errors = [_leave(group, member, out) for member in members]
    out.reply = left_reply(members, errors, api_version)
    if NONE in errors:
        if group.state is State.PREPARING:
            complete_if_joined(group, now, out)
        elif group.state is not State.EMPTY:
            prepare(table, group, now, out)
    return out


def _leave(group: ClassicGroup, identity: LeaveGroupRequest.MemberIdentity, out: Decision) -> ErrorCode:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id:
        # An admin names a static member by its instance alone.
        holder = None if instance_id is None else group.static_members.get(instance_id)
        if holder is None:
            return UNKNOWN_MEMBER_ID
        remove_member(group, group.members[holder], out)
        return NONE
    if member_id in group.pending_joins:
        group.remove(member_id)
        return NONE
    error = group.check_member(member_id, instance_id)
    if error is NONE:
        remove_member(group, group.members[member_id], out)
    return error
