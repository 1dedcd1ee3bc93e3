"""The timers of members, by Kafka's reasons for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.coordinators.decision import Moment

if TYPE_CHECKING:
    from penstock.coordinators.groups.consumer.member import Member
    from penstock.coordinators.groups.table import GroupTable

SESSION: Final = "consumer-session"
"""Nothing was heard of the member for too long."""
REBALANCE: Final = "consumer-rebalance"
"""It does not let go of partitions."""
JOIN: Final = "consumer-join"
"""A member of the classic protocol was told to rejoin and does not."""
SYNC: Final = "consumer-sync"
"""A member of the classic protocol has joined and does not ask for its assignment."""


def arm_session(table: GroupTable, group_id: str, member_id: str, timeout_ms: int, now: Moment) -> None:
    table.timers.set((SESSION, group_id, member_id), now.tick + timeout_ms)


def arm_rebalance(table: GroupTable, group_id: str, member: Member, now: Moment) -> None:
    table.timers.set((REBALANCE, group_id, member.id), now.tick + member.rebalance_timeout_ms)


def arm_join(table: GroupTable, group_id: str, member: Member, now: Moment) -> None:
    """Once: being told again gives no more time."""
    key = (JOIN, group_id, member.id)
    if key not in table.timers:
        table.timers.set(key, now.tick + member.rebalance_timeout_ms)


def arm_sync(table: GroupTable, group_id: str, member_id: str, timeout_ms: int, now: Moment) -> None:
    table.timers.set((SYNC, group_id, member_id), now.tick + timeout_ms)


def cancel(table: GroupTable, kind: str, group_id: str, member_id: str) -> None:
    table.timers.cancel((kind, group_id, member_id))


def cancel_all(table: GroupTable, group_id: str, member_id: str) -> None:
    """For a member that is gone."""
    for kind in (SESSION, REBALANCE, JOIN, SYNC):
        table.timers.cancel((kind, group_id, member_id))
