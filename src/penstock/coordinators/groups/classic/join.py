"""JoinGroup (11), versions 0-9, of classic groups."""

from __future__ import annotations

from typing import Final

from penstock.coordinators.decision import Caller, Decision, Moment
from penstock.coordinators.groups.classic.answers import (
    answer_join,
    answer_sync,
    described_members,
    joined_reply,
    refused_join,
)
from penstock.coordinators.groups.classic.group import ClassicGroup, State
from penstock.coordinators.groups.classic.member import ClassicMember
from penstock.coordinators.groups.classic.rebalance import (
    arm_session,
    complete_if_joined,
    prepare,
    rebalance_or_complete,
)
from penstock.coordinators.groups.deadlines import ClassicDeadline
from penstock.coordinators.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from penstock.coordinators.groups.table import GroupTable
from penstock.model.errors import (
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    ErrorCode,
)
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse

REBALANCE_TIMEOUT_SINCE: Final = 1
MEMBER_ID_REQUIRED_SINCE: Final = 4
SKIP_ASSIGNMENT_SINCE: Final = 9


def check_join(table: GroupTable, request: JoinGroupRequest) -> ErrorCode:
    """What can be said of a join without looking at the group."""
    if not request.group_id:
        return INVALID_GROUP_ID
    settings = table.settings
    if not settings.session_timeout_min_ms <= request.session_timeout_ms <= settings.session_timeout_max_ms:
        return INVALID_SESSION_TIMEOUT
    return NONE


def decide_join(
    table: GroupTable, group: ClassicGroup | None, request: JoinGroupRequest, caller: Caller, now: Moment
) -> Decision:
    """A place in the group, held back until the join phase is over. A group is made for the first member without id."""
    out = Decision()
    is_new_group = group is None
    if group is None:
        if request.member_id:
            out.reply = _refused(request.member_id, UNKNOWN_MEMBER_ID)
            return out
        group = ClassicGroup(request.group_id, table.timers, state_timestamp=now.wall)
        table.groups[group.id] = group
    _join(table, group, request, caller, now, out)
    if is_new_group:
        out.records.append(group.birth_record())
    return out


def _join(
    table: GroupTable, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now: Moment, out: Decision
) -> None:
    if not _has_room(table, group, request.member_id):
        group.remove(request.member_id)
        out.reply = _refused("", GROUP_MAX_SIZE_REACHED)
    elif not group.supports(request.protocol_type, [protocol.name for protocol in request.protocols]):
        out.reply = _refused(request.member_id, INCONSISTENT_GROUP_PROTOCOL)
    elif request.member_id:
        _known(table, group, request, caller, now, out)
    elif request.group_instance_id is not None:
        _new_static(table, group, request, caller, now, out)
    else:
        _new_dynamic(table, group, request, caller, now, out)


def _refused(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code, member_id=member_id)


def _has_room(table: GroupTable, group: ClassicGroup, member_id: str) -> bool:
    """Members that are in stay in, unless the limit was lowered: then the last ones to rejoin have to go."""
    limit = table.settings.group_size_max
    if group.state is State.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is State.PREPARING:
        return (member is not None and member.join_token is not None) or group.waiting < limit
    return member is not None or len(group.members) < limit


def _protocols(request: JoinGroupRequest) -> tuple[tuple[str, bytes], ...]:
    """What the member can do, each protocol once."""
    named: dict[str, bytes] = {}
    for protocol in request.protocols:
        named.setdefault(protocol.name, bytes(protocol.metadata))
    return tuple(named.items())


def _rebalance_timeout_ms(request: JoinGroupRequest, caller: Caller) -> int:
    if caller.api_version < REBALANCE_TIMEOUT_SINCE:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms


def _new_dynamic(
    table: GroupTable, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now: Moment, out: Decision
) -> None:
    """Since version 4 a member first gets its id and comes back with it: a lost reply leaves no ghost behind."""
    member_id = f"{caller.client_id}-{table.new_id()}"
    if caller.api_version < MEMBER_ID_REQUIRED_SINCE:
        _add(table, group, member_id, request, caller, now, out)
        return
    group.pending_joins[member_id] = None
    table.timers.set((ClassicDeadline.SESSION, group.id, member_id), now.tick + request.session_timeout_ms)
    out.reply = _refused(member_id, MEMBER_ID_REQUIRED)


def _new_static(
    table: GroupTable, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now: Moment, out: Decision
) -> None:
    assert request.group_instance_id is not None
    member_id = f"{request.group_instance_id}-{table.new_id()}"
    held_by = group.static_members.get(request.group_instance_id)
    if held_by is None:
        _add(table, group, member_id, request, caller, now, out)
    else:
        _take_over(table, group, group.members[held_by], member_id, request, caller, now, out)


def _add(
    table: GroupTable,
    group: ClassicGroup,
    member_id: str,
    request: JoinGroupRequest,
    caller: Caller,
    now: Moment,
    out: Decision,
) -> None:
    member = ClassicMember(
        group.id,
        member_id,
        instance_id=request.group_instance_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        rebalance_timeout_ms=_rebalance_timeout_ms(request, caller),
        session_timeout_ms=request.session_timeout_ms,
        protocols=_protocols(request),
    )
    member.is_new = True
    if group.initial_delay is not None:
        group.new_member_added = True
    group.add(member, request.protocol_type)
    group.hold_join(member, caller.token, caller.api_version)
    # It cannot send heartbeats yet, and its connection may have gone while the request is held back: without a
    # limit a client that retries would leave one member behind each time.
    table.timers.set(member.session_key, now.tick + NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(table, group, now, out)


def _known(
    table: GroupTable, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now: Moment, out: Decision
) -> None:
    if request.member_id in group.pending_joins:
        if request.group_instance_id is not None:
            # Only dynamic members are asked to come back with an id; Kafka has no better word for this one either.
            out.reply = _refused(request.member_id, UNKNOWN_SERVER_ERROR)
            return
        _add(table, group, request.member_id, request, caller, now, out)
        return
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not NONE:
        out.reply = refused_join(request.member_id, error, caller.api_version)
        return
    if group.state is State.EMPTY:
        out.reply = _refused(request.member_id, UNKNOWN_MEMBER_ID)
        return
    member = group.members[request.member_id]
    if _needs_no_rebalance(group, member, request):
        out.reply = joined_reply(group, member)
        if group.state is State.STABLE:
            out.reply.members = []
        return
    _rejoin(group, member, request, caller, out)
    rebalance_or_complete(table, group, now, out)


def _needs_no_rebalance(group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> bool:
    """A member that says what it said before just missed our reply. A stable group's leader wants a new assignment."""
    if group.state is State.PREPARING or member.protocols != _protocols(request):
        return False
    return group.state is State.COMPLETING or group.leader != member.id


def _rejoin(
    group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest, caller: Caller, out: Decision
) -> None:
    group.update(member, _protocols(request), _rebalance_timeout_ms(request, caller), request.session_timeout_ms)
    # A second join of the same member: the first one's sender has given up on it.
    answer_join(group, member, refused_join(member.id, REBALANCE_IN_PROGRESS, member.join_version), out)
    group.hold_join(member, caller.token, caller.api_version)


def _take_over(
    table: GroupTable,
    group: ClassicGroup,
    old: ClassicMember,
    member_id: str,
    request: JoinGroupRequest,
    caller: Caller,
    now: Moment,
    out: Decision,
) -> None:
    """A static member came back without its id: it takes its former place, and the former incarnation is fenced.

    In a stable group nothing else changes as long as the same protocol would be chosen: that is what static
    membership is for.
    """
    former_leader = group.leader
    answer_join(group, old, refused_join(old.id, FENCED_INSTANCE_ID, old.join_version), out)
    answer_sync(old, SyncGroupResponse(error_code=FENCED_INSTANCE_ID.code), out)
    member = group.rename(old, member_id)
    # As Kafka has it, the session runs by the former timeout until the first heartbeat.
    arm_session(group, member, now)
    group.update(member, _protocols(request), _rebalance_timeout_ms(request, caller), request.session_timeout_ms)
    if group.state is State.STABLE and group.choose_protocol() == group.protocol:
        out.records.append(group.record({each.id: each.assignment for each in group.members.values()}))
        out.reply = _kept_place(group, member, former_leader, caller)
        return
    group.hold_join(member, caller.token, caller.api_version)
    if group.state is State.PREPARING:
        complete_if_joined(group, now, out)
    else:
        prepare(table, group, now, out)


def _kept_place(
    group: ClassicGroup, member: ClassicMember, former_leader: str | None, caller: Caller
) -> JoinGroupResponse:
    """The generation goes on. A leader is told so since version 9; before, it is kept from assigning by a lie: it hears
    of the leader's former id, so it takes itself for a follower and just asks for its assignment.
    """
    leads = group.leader == member.id
    reply = joined_reply(group, member, skip_assignment=leads)
    if caller.api_version < SKIP_ASSIGNMENT_SINCE:
        reply.members, reply.leader, reply.skip_assignment = [], former_leader or "", False
    elif leads:
        reply.members = described_members(group)
    return reply
