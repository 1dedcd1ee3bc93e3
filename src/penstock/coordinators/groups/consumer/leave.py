"""Members go: by their own wish, by an admin's, or because their time is up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.coordinators.decision import Caller, Decision, Moment
from penstock.coordinators.groups.consumer import checks, migration, records, sessions
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.consumer.member import Member
from penstock.coordinators.groups.consumer.target import hash_without
from penstock.model.errors import Refused
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from penstock.coordinators.groups.table import GroupTable


def fence(table: GroupTable, group: ConsumerGroup, members: Sequence[Member], now: Moment) -> Decision:
    """Removes members. Where only members of the classic protocol remain, the group becomes a classic one."""
    if not members:
        return Decision()
    for member in members:
        sessions.cancel_all(table, group.id, member.id)
    if migration.can_downgrade(table, group, members):
        return Decision(records=migration.downgrade(table, group, members, now))
    out = [record for member in members for record in records.member_tombstones(group.id, member.id)]
    metadata_hash, unused = hash_without(group, members)
    out += [records.regex_tombstone(group.id, regex) for regex in unused if regex in group.resolved]
    out.append(records.group_record(group.id, group.epoch + 1, metadata_hash))
    return Decision(records=out)


def decide_leave(
    table: GroupTable, group: ConsumerGroup, request: LeaveGroupRequest, caller: Caller, now: Moment
) -> Decision:
    """LeaveGroup (13), versions 0-5, on a consumer group: members of either protocol, named by id or instance id."""
    leaving: dict[str, Member] = {}
    replies = []
    named = request.members
    if caller.api_version < _SEVERAL_SINCE:
        named = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    for each in named:
        reply = LeaveGroupResponse.MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id)
        try:
            member = _named(group, each)
            leaving[member.id] = member
        except Refused as refused:
            reply.error_code = refused.error.code
        replies.append(reply)
    decision = fence(table, group, list(leaving.values()), now)
    if caller.api_version < _SEVERAL_SINCE:
        decision.reply = LeaveGroupResponse(error_code=replies[0].error_code)
    else:
        decision.reply = LeaveGroupResponse(members=replies)
    return decision


_SEVERAL_SINCE = 3


def _named(group: ConsumerGroup, named: LeaveGroupRequest.MemberIdentity) -> Member:
    if named.group_instance_id is None:
        return checks.check_known(group.members.get(named.member_id), named.member_id, group.id)
    holder = group.static_member(named.group_instance_id)
    # An admin names the instance alone.
    member_id = named.member_id or ("" if holder is None else holder.id)
    return checks.check_instance(holder, member_id, named.group_instance_id)
