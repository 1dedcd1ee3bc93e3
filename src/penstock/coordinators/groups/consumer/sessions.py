"""The timers of members, by Kafka's reasons for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.coordinators.decision import Moment
from penstock.coordinators.groups.deadlines import OF_MEMBERS, ConsumerDeadline

if TYPE_CHECKING:
    from penstock.coordinators.groups.consumer.member import Member
    from penstock.coordinators.groups.table import GroupTable


def arm_session(table: GroupTable, group_id: str, member_id: str, timeout_ms: int, now: Moment) -> None:
    table.timers.set((ConsumerDeadline.SESSION, group_id, member_id), now.tick + timeout_ms)


def arm_rebalance(table: GroupTable, group_id: str, member: Member, now: Moment) -> None:
    table.timers.set((ConsumerDeadline.REBALANCE, group_id, member.id), now.tick + member.rebalance_timeout_ms)


def arm_join(table: GroupTable, group_id: str, member: Member, now: Moment) -> None:
    """Once: being told again gives no more time."""
    key = (ConsumerDeadline.JOIN, group_id, member.id)
    if key not in table.timers:
        table.timers.set(key, now.tick + member.rebalance_timeout_ms)


def arm_sync(table: GroupTable, group_id: str, member_id: str, timeout_ms: int, now: Moment) -> None:
    table.timers.set((ConsumerDeadline.SYNC, group_id, member_id), now.tick + timeout_ms)


def cancel(table: GroupTable, kind: ConsumerDeadline, group_id: str, member_id: str) -> None:
    table.timers.cancel((kind, group_id, member_id))


def cancel_all(table: GroupTable, group_id: str, member_id: str) -> None:
    """For a member that is gone."""
    for kind in OF_MEMBERS:
        table.timers.cancel((kind, group_id, member_id))
