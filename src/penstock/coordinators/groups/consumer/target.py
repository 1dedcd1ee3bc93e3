"""Subscriptions of the whole group, and the target assignment that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.coordinators.decision import Moment, StateRecord
from penstock.coordinators.groups.assignors import ASSIGNORS, Subscriber, Target
from penstock.coordinators.groups.consumer import records
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.consumer.limits import assignor_names
from penstock.coordinators.groups.consumer.member import Member, ResolvedRegex
from penstock.coordinators.groups.consumer.topic_hash import group_hash
from penstock.model.ids import Uuid

if TYPE_CHECKING:
    from penstock.coordinators.groups.table import GroupTable
    from penstock.metadata.image import ClusterImage

_NOTHING: Target = {}


class Change(NamedTuple):
    """One member's change that is decided but not applied: `before` becomes `after`.

    `replaces` is the id of the static member whose place `after` takes. `resolved` are the group's patterns as they
    will be.
    """

    before: Member
    after: Member
    resolved: Mapping[str, ResolvedRegex]
    replaces: str | None = None


def subscribed_names(member: Member, resolved: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """The topics it subscribes to by name or by pattern; a pattern that was not looked up yet matches nothing."""
    found = resolved.get(member.regex) if member.regex else None
    return member.topics if found is None else member.topics | found.topics


def topic_ids(names: Iterable[str], image: ClusterImage) -> frozenset[Uuid]:
    """The ids of those that exist."""
    ids = image.ids
    return frozenset(ids[name] for name in names if name in ids)


def hash_after(group: ConsumerGroup, change: Change, regexes: Iterable[str]) -> int:
    """The hash of the topics the group subscribes to once `change` is applied and it uses `regexes`."""
    before, after = change.before, change.after
    names = set(group.name_counts)
    if before.topics != after.topics:
        names.difference_update(name for name in before.topics if group.name_counts.get(name) == 1)
        names.update(after.topics)
    return _hash(group, names, (change.resolved[regex] for regex in regexes if regex in change.resolved))


def hash_without(group: ConsumerGroup, leaving: Iterable[Member]) -> tuple[int, list[str]]:
    """The hash once these members are gone, and the patterns that nobody uses then."""
    names, regexes = dict(group.name_counts), dict(group.regex_counts)
    for member in leaving:
        for name in member.topics:
            names[name] -= 1
        if member.regex:
            regexes[member.regex] -= 1
    left = (found for regex, found in group.resolved.items() if regexes.get(regex))
    unused = sorted(regex for regex, count in regexes.items() if not count)
    return _hash(group, {name for name, count in names.items() if count}, left), unused


def _hash(group: ConsumerGroup, names: set[str], resolved: Iterable[ResolvedRegex]) -> int:
    for found in resolved:
        names |= found.topics
    return group_hash(names, group.table.image, group.topic_hashes)


def preferred_assignor(table: GroupTable, votes: Mapping[str, int]) -> str:
    """The assignor that most members ask for, the default when nobody asks."""
    known = assignor_names(table.settings)
    best = max(sorted(votes), key=votes.__getitem__, default=None)
    return best if best in known else known[0]


def may_assign(group: ConsumerGroup, interval_ms: int, now: Moment) -> bool:
    """The first assignment is made at once; later ones wait, so that many changes cost one."""
    return not group.target_timestamp or not interval_ms or now.wall >= group.target_timestamp + interval_ms


def assign(
    table: GroupTable, group: ConsumerGroup, epoch: int, change: Change, now: Moment, out: list[StateRecord]
) -> Target:
    """Computes the target of `epoch`, adds the records of all members whose target changes; the target of `after`."""
    image = table.image
    members = {member_id: member for member_id, member in group.members.items() if member_id != change.replaces}
    members[change.after.id] = change.after
    cache: dict[tuple[frozenset[str], str], frozenset[Uuid]] = {}
    subscribers = []
    for member in members.values():
        topics = cache.get((member.topics, member.regex))
        if topics is None:
            topics = topic_ids(subscribed_names(member, change.resolved), image)
            cache[member.topics, member.regex] = topics
        former = group.targets.get(member.id, _NOTHING)
        if change.replaces is not None and member is change.after:
            former = group.targets.get(change.replaces, _NOTHING)
        subscribers.append(Subscriber(member.id, member.instance_id, topics, former))
    counts = {topic: len(image.topics[topic].partitions) for topics in cache.values() for topic in topics}
    votes = dict(group.assignor_votes)
    if change.before.assignor != change.after.assignor:
        if change.before.assignor is not None:
            votes[change.before.assignor] -= 1
        if change.after.assignor is not None:
            votes[change.after.assignor] = votes.get(change.after.assignor, 0) + 1
    votes = {name: count for name, count in votes.items() if count}
    targets = ASSIGNORS[preferred_assignor(table, votes)](subscribers, counts)
    for member_id, target in targets.items():
        if target != group.targets.get(member_id):
            out.append(records.target_record(group.id, member_id, target))
    out.append(records.target_epoch_record(group.id, epoch, now.wall))
    return targets[change.after.id]
