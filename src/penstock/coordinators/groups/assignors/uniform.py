"""The uniform assignor: members read about equally many partitions and keep what they had.

When all members subscribe to the same topics, loads differ by at most one and no partition moves that need not move.
When they do not, the spread is as even as the subscriptions allow (`spread.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.coordinators.groups.assignors.spread import assign_mixed
from penstock.coordinators.groups.assignors.subscriber import Subscriber, Target
from penstock.model.ids import Uuid


def assign(subscribers: Sequence[Subscriber], partitions: Mapping[Uuid, int]) -> dict[str, Target]:
    """Partitions by member id; `partitions` has the partition count of every topic that anybody subscribes to."""
    if not subscribers:
        return {}
    ordered = sorted(subscribers, key=lambda member: member.id)
    topics = ordered[0].topics
    if all(member.topics == topics for member in ordered):
        return _assign_alike(ordered, {topic: partitions[topic] for topic in sorted(topics)})
    return assign_mixed(ordered, partitions)


def _assign_alike(members: Sequence[Subscriber], partitions: Mapping[Uuid, int]) -> dict[str, Target]:
    share, extras = divmod(sum(partitions.values()), len(members))
    free = {topic: set(range(count)) for topic, count in partitions.items()}
    kept: list[dict[Uuid, list[int]]] = []
    quotas: list[int] = []
    for member in members:
        owned = _still_valid(member, free)
        size = sum(map(len, owned.values()))
        quota = share
        if size > share and extras:
            quota, extras = share + 1, extras - 1
        kept.append(_cut(owned, quota))
        quotas.append(quota)
        for topic, numbers in kept[-1].items():
            free[topic].difference_update(numbers)
    # Who has no more than its share may get one of the extras that nobody holds.
    for position, quota in enumerate(quotas):
        if extras and quota == share:
            quotas[position], extras = share + 1, extras - 1
    left = ((topic, number) for topic, numbers in free.items() for number in sorted(numbers))
    for owned, quota in zip(kept, quotas, strict=True):
        for _ in range(quota - sum(map(len, owned.values()))):
            topic, number = next(left)
            owned.setdefault(topic, []).append(number)
    return {
        member.id: {topic: frozenset(numbers) for topic, numbers in owned.items()}
        for member, owned in zip(members, kept, strict=True)
    }


def _still_valid(member: Subscriber, free: Mapping[Uuid, set[int]]) -> dict[Uuid, list[int]]:
    """What it owned and nobody before it keeps; topics it left and partitions that do not exist drop out."""
    found: dict[Uuid, list[int]] = {}
    for topic in sorted(member.owned):
        numbers = sorted(member.owned[topic] & free[topic]) if topic in free else []
        if numbers:
            found[topic] = numbers
    return found


def _cut(owned: dict[Uuid, list[int]], quota: int) -> dict[Uuid, list[int]]:
    """The first `quota` partitions of `owned`."""
    kept: dict[Uuid, list[int]] = {}
    for topic, numbers in owned.items():
        if quota > 0:
            kept[topic] = numbers[:quota]
        quota -= len(numbers)
    return kept
