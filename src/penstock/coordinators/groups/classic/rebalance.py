"""How a classic group moves: prepare a rebalance, complete the join, hand out what the leader assigned.

Every function adds to the decision it is given. Held back requests are answered through `answers.py` alone.
"""

from __future__ import annotations

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.groups.classic.answers import answer_join, answer_sync, joined_reply
from penstock.coordinators.groups.classic.group import ClassicGroup, State
from penstock.coordinators.groups.classic.member import ClassicMember
from penstock.coordinators.groups.table import GroupTable
from penstock.model.errors import REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse


def arm_session(group: ClassicGroup, member: ClassicMember, now: Moment) -> None:
    """From now the member has one session timeout to show that it is alive."""
    group.timers.set(member.session_key, now.tick + member.session_timeout_ms)


def rebalance_or_complete(table: GroupTable, group: ClassicGroup, now: Moment, out: Decision) -> None:
    """Something about the members changed: starts a rebalance, or ends the join of the one under way if it can."""
    if group.state is State.PREPARING:
        complete_if_joined(group, now, out)
    else:
        prepare(table, group, now, out)


def prepare(table: GroupTable, group: ClassicGroup, now: Moment, out: Decision) -> None:
    """Asks everybody to join again. The first members of an empty group wait a while for others."""
    if group.state is State.COMPLETING:
        _send_back(group, now, out)
    group.pending_syncs.clear()
    group.timers.cancel(group.sync_key)
    if group.state is State.EMPTY:
        delay_ms = table.settings.initial_rebalance_delay_ms
        group.initial_delay = (delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        group.new_member_added = False
        group.timers.set(group.join_key, now.tick + delay_ms)
        group.enter(State.PREPARING, now)
        return
    group.enter(State.PREPARING, now)
    if group.all_joined:
        complete_join(group, now, out)
    else:
        group.timers.set(group.join_key, now.tick + group.rebalance_timeout_ms)


def _send_back(group: ClassicGroup, now: Moment, out: Decision) -> None:
    """Members that wait for an assignment of this generation will not get one."""
    for member in group.members.values():
        member.assignment = b""
        if answer_sync(member, SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS.code), out):
            arm_session(group, member, now)


def complete_if_joined(group: ClassicGroup, now: Moment, out: Decision) -> None:
    """Ends the join phase when the last member has joined. The initial one ends by the clock alone."""
    if group.state is State.PREPARING and group.previous_state is not State.EMPTY and group.all_joined:
        complete_join(group, now, out)


def initial_delay_over(table: GroupTable, group: ClassicGroup, now: Moment, out: Decision) -> None:
    """Extends the delay while members keep coming and the rebalance timeout allows, else completes the join."""
    assert group.initial_delay is not None
    delay_ms, left_ms = group.initial_delay
    if group.new_member_added and left_ms:
        group.new_member_added = False
        next_ms = min(table.settings.initial_rebalance_delay_ms, left_ms)
        group.initial_delay = (next_ms, max(left_ms - delay_ms, 0))
        group.timers.set(group.join_key, now.tick + next_ms)
    else:
        complete_join(group, now, out)


def complete_join(group: ClassicGroup, now: Moment, out: Decision) -> None:
    """Ends the join phase with those who have joined.

    Dynamic members who have not are removed. Static ones keep their place until their session ends; if nobody but
    such members is left, everybody gets another rebalance timeout.
    """
    group.timers.cancel(group.join_key)
    group.initial_delay = None
    for member in [m for m in group.members.values() if m.join_token is None and m.instance_id is None]:
        group.remove(member.id)
    if not group.elect_joined_leader() and group.members:
        group.timers.set(group.join_key, now.tick + group.rebalance_timeout_ms)
        return
    group.next_generation(now)
    if group.state is State.EMPTY:
        out.records.append(group.record({}))
        return
    for member in group.members.values():
        answer_join(group, member, joined_reply(group, member), out)
        arm_session(group, member, now)
        member.is_new = False
        group.pending_syncs[member.id] = None
    group.timers.set(group.sync_key, now.tick + group.rebalance_timeout_ms)


def remove_member(group: ClassicGroup, member: ClassicMember, out: Decision) -> None:
    """Takes a member out of the group; what it waits for is answered so that it starts over if it is still there."""
    answer_join(group, member, JoinGroupResponse(error_code=UNKNOWN_MEMBER_ID.code), out)
    answer_sync(member, SyncGroupResponse(error_code=UNKNOWN_MEMBER_ID.code), out)
    group.remove(member.id)


def after_removal(table: GroupTable, group: ClassicGroup, now: Moment, out: Decision) -> None:
    """What follows when a member's time was up."""
    if group.state is State.STABLE or group.state is State.COMPLETING:
        prepare(table, group, now, out)
    elif group.state is State.PREPARING and group.all_joined:
        complete_join(group, now, out)
