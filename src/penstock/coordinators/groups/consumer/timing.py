"""What happens in consumer groups when time is up, after a load, and when topics change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.groups.consumer import leave, migration, sessions
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.consumer.member import JOIN_EPOCH, UNREVOKED
from penstock.coordinators.groups.deadlines import ConsumerDeadline

if TYPE_CHECKING:
    from penstock.coordinators.groups.table import GroupTable
    from penstock.metadata.delta import Delta


def expire(table: GroupTable, kind: ConsumerDeadline, group_id: str, member_id: str, now: Moment) -> Decision | None:
    """A deadline has come and was taken out."""
    if kind is ConsumerDeadline.DOWNGRADED:
        return migration.downgraded(table, group_id, member_id, now)
    group = table.groups.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if member is None:
        return None
    assert isinstance(group, ConsumerGroup)
    if kind is ConsumerDeadline.REBALANCE and (member.state != UNREVOKED or member.epoch < JOIN_EPOCH):
        return None
    return leave.fence(table, group, [member], now)


def loaded(table: GroupTable, group: ConsumerGroup, now: Moment) -> Iterator[Decision]:
    """Gives every member a session from now on, and to those who must let go of something their time for that."""
    timeout_ms = group.limits(now).session_timeout_ms
    for member in group.members.values():
        sessions.arm_session(table, group.id, member.id, timeout_ms, now)
        if member.state == UNREVOKED:
            sessions.arm_rebalance(table, group.id, member, now)
    yield from ()


def image_changed(table: GroupTable, delta: Delta, _now: Moment) -> Iterator[Decision]:
    """Groups that read a changed topic look at their subscriptions again at the next heartbeat; nothing is written."""
    names = set(delta.created.values())
    names.update(topic.name for topic in delta.deleted.values())
    topics = table.image.topics
    names.update(topics[topic_id].name for topic_id in delta.partitions if topic_id in topics)
    if not names:
        return
    for group in table.groups.values():
        if isinstance(group, ConsumerGroup):
            _note_topics(group, names, created=bool(delta.created))
    yield from ()


def _note_topics(group: ConsumerGroup, names: set[str], *, created: bool) -> None:
    for name in names & group.topic_hashes.keys():
        del group.topic_hashes[name]
    if created:
        group.topics_made_at = group.table.image.offset
    if not group.metadata_stale:
        group.metadata_stale = any(group.subscribes_to(name) for name in names)
