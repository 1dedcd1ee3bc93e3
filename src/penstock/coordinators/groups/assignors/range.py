"""The range assignor: each topic is cut into runs, handed to its subscribers in one order.

Topics with equally many partitions and the same subscribers are cut alike, so that the same member reads the same
numbers of all of them (what joins need). Static members come first, by instance id: a restart under another member id
gives them the same runs again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.coordinators.groups.assignors.subscriber import Subscriber, Target
from penstock.model.ids import Uuid


def assign(subscribers: Sequence[Subscriber], partitions: Mapping[Uuid, int]) -> dict[str, Target]:
    """Partitions by member id; `partitions` has the partition count of every topic that anybody subscribes to."""
    ordered = sorted(subscribers, key=_rank)
    targets: dict[str, dict[Uuid, frozenset[int]]] = {member.id: {} for member in ordered}
    by_topic: dict[Uuid, list[Subscriber]] = {}
    for member in ordered:
        for topic in member.topics:
            by_topic.setdefault(topic, []).append(member)
    for topic in sorted(by_topic):
        members = by_topic[topic]
        share, extra = divmod(partitions[topic], len(members))
        start = 0
        for position, member in enumerate(members):
            stop = start + share + (position < extra)
            if start < stop:
                targets[member.id][topic] = frozenset(range(start, stop))
            start = stop
    return dict(targets)


def _rank(member: Subscriber) -> tuple[bool, str]:
    if member.instance_id is not None:
        return False, member.instance_id
    return True, member.id
