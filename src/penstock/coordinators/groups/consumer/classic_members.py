"""JoinGroup (11), SyncGroup (14), Heartbeat (12) and LeaveGroup (13) of members that speak the classic protocol in a
consumer group.

To such a member the group looks like a classic one that it does not lead: a new epoch is a rebalance, its own epoch the
generation. It joins to report what it owns and hear of its epoch, and syncs to fetch its partitions; nothing is held
back, for it need not wait for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.coordinators.decision import Caller, Decision, Moment
from penstock.coordinators.groups.classic.answers import refused_join
from penstock.coordinators.groups.consumer import checks, limits, migration, sessions, update
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.consumer.leave import decide_leave
from penstock.coordinators.groups.consumer.member import UNRELEASED, UNREVOKED, ClassicMetadata, Member
from penstock.coordinators.groups.consumer.subscription import (
    owned_by_id,
    read_subscription,
    version_of,
    write_assignment,
)
from penstock.coordinators.groups.consumer.target import hash_without, may_assign
from penstock.coordinators.groups.deadlines import ConsumerDeadline
from penstock.coordinators.groups.table import CONSUMER_PROTOCOL_TYPE
from penstock.model.errors import (
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    Refused,
)
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.protocol.wire import Malformed

if TYPE_CHECKING:
    from penstock.coordinators.groups.table import GroupTable

__all__ = ["decide_heartbeat", "decide_join", "decide_leave", "decide_sync"]

_REBALANCE_TIMEOUT_SINCE: Final = 1
_MEMBER_ID_REQUIRED_SINCE: Final = 4


def decide_join(
    table: GroupTable, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now: Moment
) -> Decision:
    """Takes the member in, or lets it go on to the next epoch; answered at once."""
    try:
        return _join(table, group, request, caller, now)
    except Refused as refused:
        return Decision(reply=refused_join(request.member_id, refused.error, caller.api_version))


def _join(table: GroupTable, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now: Moment) -> Decision:
    if not limits.may_mix(table.settings):
        raise Refused(INCONSISTENT_GROUP_PROTOCOL, "members of the classic protocol may not join consumer groups")
    member_id = request.member_id or table.new_id()
    checks.check_room(group, member_id, table.settings)
    _check_protocols(group, request)
    needs_id = not request.member_id and request.group_instance_id is None
    if needs_id and caller.api_version >= _MEMBER_ID_REQUIRED_SINCE:
        return Decision(reply=refused_join(member_id, MEMBER_ID_REQUIRED, caller.api_version))
    said = _subscription(request)
    decision = Decision()
    out = decision.records
    holder = group.static_member(request.group_instance_id)
    before = _member(group, holder, request, member_id, decision)
    after = _updated(before, request, said, caller)
    outcome = update.note_change(table, group, before, after, now, out, caller.may_describe)
    reported = owned_by_id(said.owned_partitions, table.image)
    if holder is not None and migration.can_downgrade_for(table, group, holder):
        # A target that is out of date is not worth following: the classic group will rebalance anyway.
        stale = outcome.epoch > group.target_epoch
        if not stale:
            after = update.follow_target(table, group, outcome, reported, now, out)
        out += migration.downgrade_replacing(table, group, holder, after, now, rebalance=stale)
    else:
        after = update.follow_target(table, group, outcome, reported, now, out)
        sessions.arm_session(table, group.id, member_id, request.session_timeout_ms, now)
        sessions.arm_sync(table, group.id, member_id, after.rebalance_timeout_ms, now)
    sessions.cancel(table, ConsumerDeadline.JOIN, group.id, member_id)
    decision.reply = JoinGroupResponse(
        generation_id=after.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
        member_id=member_id,
    )
    return decision


def _check_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    """One protocol must be common to all classic members, for the day when the group is a classic one again."""
    everybody = group.classic_members
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not any(
        group.classic_protocols.get(protocol.name, 0) == everybody for protocol in request.protocols
    ):
        raise Refused(INCONSISTENT_GROUP_PROTOCOL, f"group {group.id} has no protocol in common with this member")


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """Members say the same for all their protocols."""
    try:
        return read_subscription(bytes(request.protocols[0].metadata))
    except Malformed as broken:
        raise Refused(UNKNOWN_SERVER_ERROR, str(broken)) from None


def _member(
    group: ConsumerGroup, holder: Member | None, request: JoinGroupRequest, member_id: str, decision: Decision
) -> Member:
    """The member as it is known, or a new one. Who comes with an instance id alone takes over from its former self."""
    if request.group_instance_id is None:
        return group.members.get(member_id) or Member(member_id)
    if request.member_id:
        return checks.check_instance(holder, member_id, request.group_instance_id)
    if holder is None:
        return Member(member_id)
    return update.take_place(group, holder, member_id, decision.records)


def _updated(before: Member, request: JoinGroupRequest, said: ConsumerProtocolSubscription, caller: Caller) -> Member:
    timeout_ms = request.rebalance_timeout_ms
    if caller.api_version < _REBALANCE_TIMEOUT_SINCE:
        timeout_ms = request.session_timeout_ms
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)
    return before._replace(
        instance_id=before.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=said.rack_id or before.rack_id,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topics=frozenset(said.topics),
        regex="",
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, protocols),
    )


def decide_sync(
    table: GroupTable, group: ConsumerGroup, request: SyncGroupRequest, _caller: Caller, now: Moment
) -> Decision:
    """Gives the member what it has at its epoch."""
    try:
        member, said = _sender(group, request)
        name = said.protocols[0][0]
        type_differs = request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
        if type_differs or request.protocol_name not in (None, name):
            raise Refused(INCONSISTENT_GROUP_PROTOCOL, f"the group's protocol is {name}")
        if group.target_epoch > member.epoch and member.state != UNREVOKED:
            sessions.arm_join(table, group.id, member, now)
            raise Refused(REBALANCE_IN_PROGRESS)
    except Refused as refused:
        return Decision(reply=SyncGroupResponse(error_code=refused.error.code))
    sessions.cancel(table, ConsumerDeadline.SYNC, group.id, member.id)
    sessions.arm_session(table, group.id, member.id, said.session_timeout_ms, now)
    assignment = write_assignment(member.assigned, version_of(said.protocols[0][1]), table.image)
    reply = SyncGroupResponse(
        protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
    )
    return Decision(reply=reply)


def decide_heartbeat(
    table: GroupTable, group: ConsumerGroup, request: HeartbeatRequest, _caller: Caller, now: Moment
) -> Decision:
    """Puts the end of the session off, and says whether a join would bring the member further."""
    try:
        member, said = _sender(group, request)
    except Refused as refused:
        return Decision(reply=HeartbeatResponse(error_code=refused.error.code))
    sessions.arm_session(table, group.id, member.id, said.session_timeout_ms, now)
    error = NONE
    if (
        member.epoch < group.target_epoch
        or member.state == UNREVOKED
        or (member.state == UNRELEASED and not group.waits_for_release(member))
        or _nobody_else_assigns(group, group.limits(now).assignment_interval_ms, now)
    ):
        error = REBALANCE_IN_PROGRESS
        sessions.arm_join(table, group.id, member, now)
    return Decision(reply=HeartbeatResponse(error_code=error.code))


def _nobody_else_assigns(group: ConsumerGroup, interval_ms: int, now: Moment) -> bool:
    """Whether a new target is due that only a join can bring about.

    Members of the new protocol compute it in passing. Where there are none and the group may not become a classic one,
    somebody has to be asked to join.
    """
    if group.classic_members < len(group.members):
        return False
    if group.metadata_stale:
        group.metadata_stale = hash_without(group, ())[0] != group.metadata_hash
    return (group.metadata_stale or group.epoch > group.target_epoch) and may_assign(group, interval_ms, now)


def _sender(group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest) -> tuple[Member, ClassicMetadata]:
    """The member that asks, if it speaks the classic protocol and knows its generation."""
    if request.group_instance_id is None:
        member = checks.check_known(group.members.get(request.member_id), request.member_id, group.id)
    else:
        holder = group.static_member(request.group_instance_id)
        member = checks.check_instance(holder, request.member_id, request.group_instance_id)
    if member.classic is None:
        raise Refused(UNKNOWN_MEMBER_ID, f"member {member.id} does not speak the classic protocol")
    if member.epoch != request.generation_id:
        raise Refused(ILLEGAL_GENERATION, f"member {member.id} is at generation {member.epoch}")
    return member, member.classic
