"""Offsets that nobody has used for long enough or whose topic is gone, and groups of which nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.groups.records import offset_tombstone
from penstock.coordinators.groups.table import CommittedOffset, Group, GroupTable
from penstock.metadata.delta import Delta
from penstock.model.errors import NONE
from penstock.model.ids import ZERO_UUID

GROUPS_PER_STEP: Final = 200
"""How many groups are looked at before the driver may turn to something else."""


def expire_offsets(table: GroupTable, now: Moment) -> Iterator[Decision]:
    """One decision for each group that loses something, and an empty one every few groups for the driver to rest at.

    Groups may come and go while the driver rests.
    """
    retention_ms = table.settings.offsets_retention_ms
    for seen, group_id in enumerate(list(table.groups), start=1):
        group = table.groups.get(group_id)
        if group is not None:
            decision = _expire_group(table, group, retention_ms, now)
            if decision.records:
                yield decision
                continue
        if seen % GROUPS_PER_STEP == 0:
            yield Decision()


def _expire_group(table: GroupTable, group: Group, retention_ms: int, now: Moment) -> Decision:
    """Nothing expires that an open transaction may still change, and no group that one has offsets in."""
    out = Decision()
    kept = bool(table.pending.of_group(group.id))
    for (topic, partition), committed in table.offsets.get(group.id, {}).items():
        if kept and table.pending.is_open(group.id, topic, partition):
            continue
        former = table.is_of_a_former_topic(topic, committed)
        if former or (_expired(group, committed, retention_ms, now) and not group.subscribes_to(topic)):
            out.records.append(offset_tombstone(group.id, topic, partition))
        else:
            kept = True
    if not kept and group.check_delete() is NONE:
        out.records.extend(group.tombstones())
    return out


def _expired(group: Group, committed: CommittedOffset, retention_ms: int, now: Moment) -> bool:
    base = group.expiry_base(committed)
    if base is None:
        return False
    if committed.expire_timestamp != -1:
        return now.wall >= committed.expire_timestamp
    return now.wall - base >= retention_ms


def holds_former_topics(table: GroupTable, group: Group) -> bool:
    """Whether a group has offsets of topics that went while nobody coordinated it."""
    held = table.offsets.get(group.id, {})
    return any(table.is_of_a_former_topic(topic, committed) for (topic, _), committed in held.items())


def topics_deleted(table: GroupTable, delta: Delta) -> Iterator[Decision]:
    """Offsets of topics that are gone go too, one decision for each group. A later topic of the same name keeps its.

    What is removed takes along what is pending. So an offset stays for now whose successor is of the later topic: it is
    not shown, and goes with the next expiry.
    """
    for topic in delta.deleted.values():
        former = {ZERO_UUID, topic.id}
        pending = table.pending.of_topic(topic.name) if table.pending else {}
        for group_id in {**table.offset_topics.get(topic.name, {}), **pending}:
            held = table.offsets.get(group_id, {})
            committed = [
                partition for (name, partition), each in held.items() if name == topic.name and each.topic_id in former
            ]
            coming = pending.get(group_id, {})
            partitions = dict.fromkeys([*committed, *(partition for partition, ids in coming.items() if ids)])
            gone = [partition for partition in partitions if coming.get(partition, former) <= former]
            if gone:
                yield Decision([offset_tombstone(group_id, topic.name, partition) for partition in gone])
