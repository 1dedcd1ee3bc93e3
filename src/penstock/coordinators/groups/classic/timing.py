"""What happens in a classic group when time is up, after a load, and when the shard is dropped."""

from __future__ import annotations

from penstock.coordinators.decision import Answer, Decision, Moment
from penstock.coordinators.groups.classic.answers import answer_join, answer_sync
from penstock.coordinators.groups.classic.group import ClassicGroup, State
from penstock.coordinators.groups.classic.rebalance import (
    after_removal,
    arm_session,
    complete_join,
    initial_delay_over,
    prepare,
    remove_member,
)
from penstock.coordinators.groups.deadlines import ClassicDeadline
from penstock.coordinators.groups.table import GroupTable
from penstock.model.errors import NOT_COORDINATOR
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse


def expire(table: GroupTable, kind: ClassicDeadline, group_id: str, member_id: str, now: Moment) -> Decision | None:
    """A deadline has come and was taken out."""
    group = table.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return None
    out = Decision()
    match kind:
        case ClassicDeadline.SESSION:
            _session_over(table, group, member_id, now, out)
        case ClassicDeadline.JOIN:
            _join_over(table, group, now, out)
        case ClassicDeadline.SYNC:
            _sync_over(table, group, now, out)
    return out


def _session_over(table: GroupTable, group: ClassicGroup, member_id: str, now: Moment, out: Decision) -> None:
    if member_id in group.pending_joins:
        group.remove(member_id)
        if group.state is State.PREPARING and group.all_joined:
            complete_join(group, now, out)
        return
    member = group.members.get(member_id)
    # A member that waits for us is not late. Its session starts again when it is answered.
    if member is None or member.excused:
        return
    remove_member(group, member, out)
    after_removal(table, group, now, out)


def _join_over(table: GroupTable, group: ClassicGroup, now: Moment, out: Decision) -> None:
    if group.initial_delay is not None:
        initial_delay_over(table, group, now, out)
    else:
        complete_join(group, now, out)


def _sync_over(table: GroupTable, group: ClassicGroup, now: Moment, out: Decision) -> None:
    """Members that did not ask for their assignment within a rebalance timeout are gone."""
    if not group.pending_syncs:
        return
    for member in [m for m in group.members.values() if m.id in group.pending_syncs]:
        remove_member(group, member, out)
    prepare(table, group, now, out)


def loaded(table: GroupTable, group: ClassicGroup, now: Moment) -> Decision:
    """Gives every member a session from now on; a group over the limit rebalances until it fits."""
    out = Decision()
    for member in group.members.values():
        arm_session(group, member, now)
    if len(group.members) > table.settings.group_size_max:
        prepare(table, group, now, out)
    return out


def unload(group: ClassicGroup) -> list[Answer]:
    """Ends what is held back: the coordinator is elsewhere."""
    out = Decision()
    for member in group.members.values():
        answer_join(group, member, JoinGroupResponse(error_code=NOT_COORDINATOR.code, member_id=member.id), out)
        answer_sync(member, SyncGroupResponse(error_code=NOT_COORDINATOR.code), out)
    return out.answers


def forget(group: ClassicGroup) -> None:
    """Cancels every timer of a group that is gone."""
    for member_id in (*group.members, *group.pending_joins):
        group.timers.cancel((ClassicDeadline.SESSION, group.id, member_id))
    group.timers.cancel(group.join_key)
    group.timers.cancel(group.sync_key)
