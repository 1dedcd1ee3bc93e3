"""One member joins or changes: what follows for the group's epoch, the target, and the member's own assignment.

Both protocols go through here. Nothing is applied: the records are, later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.coordinators.decision import MayDescribe, Moment, StateRecord
from penstock.coordinators.groups.assignors import Target
from penstock.coordinators.groups.consumer import records, regexes, sessions
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.consumer.member import STATIC_LEAVE_EPOCH, UNREVOKED, Member
from penstock.coordinators.groups.consumer.reconcile import Goal, Reported, reconcile
from penstock.coordinators.groups.consumer.target import (
    Change,
    assign,
    hash_after,
    may_assign,
    subscribed_names,
    topic_ids,
)
from penstock.coordinators.groups.deadlines import ConsumerDeadline

if TYPE_CHECKING:
    from penstock.coordinators.groups.table import GroupTable

_NOTHING: Target = {}


class Outcome(NamedTuple):
    """What came of a change: the group's epoch then, and whether the member's subscription changed."""

    change: Change
    epoch: int
    subscription_changed: bool


def take_place(group: ConsumerGroup, former: Member, member_id: str, out: list[StateRecord]) -> Member:
    """Gives the place of a static member to its next incarnation, with all that it has."""
    successor = former._replace(id=member_id, epoch=0, previous_epoch=0)
    out += records.member_tombstones(group.id, former.id)
    out.append(records.member_record(group.id, successor))
    out.append(records.target_record(group.id, member_id, group.targets.get(former.id, _NOTHING)))
    out.append(records.current_record(group.id, successor))
    return successor


def note_change(
    table: GroupTable,
    group: ConsumerGroup,
    before: Member,
    after: Member,
    now: Moment,
    out: list[StateRecord],
    may_describe: MayDescribe,
) -> Outcome:
    """Writes down what the member says now, and raises the group's epoch if that or a topic matters to others."""
    replaces = group.static.get(after.instance_id) if after.instance_id is not None else None
    names_changed = before.topics != after.topics
    if before != after:
        out.append(records.member_record(group.id, after))
    regex_change = regexes.note_change(group, before, after, out)
    counts = regexes.counts_after(group, before, after)
    resolved = {regex: found for regex, found in group.resolved.items() if regex in counts}
    topics_found = False
    if regexes.refresh_due(table, group, counts, now):
        for regex, found in regexes.resolve(sorted(counts), table.image, now, may_describe).items():
            topics_found |= found.topics != (resolved[regex].topics if regex in resolved else frozenset())
            resolved[regex] = found
            out.append(records.regex_record(group.id, regex, found))
    change = Change(before, after, resolved, None if replaces == after.id else replaces)
    bump = names_changed or group.target_is_foreign or topics_found or regex_change == regexes.CHANGED_AND_KNOWN
    epoch = group.epoch
    if bump or group.metadata_stale:
        metadata_hash = hash_after(group, change, counts)
        if bump or metadata_hash != group.metadata_hash:
            epoch += 1
            out.append(records.group_record(group.id, epoch, metadata_hash))
        if group.has_partition_metadata:
            out.append(records.partition_metadata_tombstone(group.id))
        group.metadata_stale = False
    return Outcome(change, epoch, names_changed or regex_change != regexes.NO_CHANGE)


def follow_target(
    table: GroupTable,
    group: ConsumerGroup,
    outcome: Outcome,
    reported: Reported,
    now: Moment,
    out: list[StateRecord],
) -> Member:
    """Computes a new target if one is due and brings the member nearer to it; the member as it is then."""
    change, member = outcome.change, outcome.change.after
    target_epoch = group.target_epoch
    interval_ms = group.limits(now).assignment_interval_ms if outcome.epoch > target_epoch else 0
    if outcome.epoch > target_epoch and may_assign(group, interval_ms, now):
        target = assign(table, group, outcome.epoch, change, now, out)
        target_epoch = outcome.epoch
    else:
        target = group.targets.get(change.replaces or member.id, _NOTHING)
    if not outcome.subscription_changed and member.follows(target_epoch):
        return member
    subscribed = topic_ids(subscribed_names(member, change.resolved), table.image)
    goal = Goal(target_epoch, target, subscribed, group.is_free)
    moved = reconcile(member, goal, reported, subscription_changed=outcome.subscription_changed)
    if moved == member:
        return member
    out.append(records.current_record(group.id, moved))
    if moved.classic is None:
        if moved.state == UNREVOKED:
            sessions.arm_rebalance(table, group.id, moved, now)
        else:
            sessions.cancel(table, ConsumerDeadline.REBALANCE, group.id, moved.id)
    return moved


def static_leave(member: Member) -> Member:
    """A static member that is away: it keeps its partitions, and its successor starts at epoch 0."""
    assigned = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()}
    return member._replace(epoch=STATIC_LEAVE_EPOCH, assigned=assigned, revoking={})
