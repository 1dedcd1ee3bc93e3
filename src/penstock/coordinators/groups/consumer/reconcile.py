"""The member's state machine: from what it has towards what it shall have, one heartbeat at a time.

| a heartbeat finds | stable | unrevoked | unreleased |
|---|---|---|---|
| the target at the member's epoch | stays | as below | *step* |
| a newer target | *step* | as below | *step* |
| that it still holds what it must give up, or does not say | | stays | |
| that it holds nothing of that any more | | *step* | |
| topics that it no longer subscribes to | gives them up: unrevoked | the same | with its *step* |

*step*: something has to be given up that the member still holds: unrevoked, at its old epoch. Else it takes what of the
target is free and is at the target's epoch: stable, or unreleased while others still hold the rest.

Who stays unrevoked for its rebalance timeout is fenced (`timing.py`). A state that a newer release wrote is left by a
member that holds nothing; any other is fenced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from penstock.coordinators.groups.assignors import Target
from penstock.coordinators.groups.consumer.member import (
    STABLE,
    UNRELEASED,
    UNREVOKED,
    Member,
    Owned,
)
from penstock.model.errors import FENCED_MEMBER_EPOCH, Refused
from penstock.model.ids import Uuid

# Partitions by topic, as a member reports them; None when it did not.
Reported = Iterable[tuple[Uuid, Iterable[int]]] | None


class Goal(NamedTuple):
    """Where a member shall get to. `subscribed` are the topics it may have at all; `is_free` asks for owners."""

    epoch: int
    target: Target
    subscribed: frozenset[Uuid]
    is_free: Callable[[Uuid, int], bool]


def reconcile(member: Member, goal: Goal, reported: Reported, *, subscription_changed: bool) -> Member:
    """The member as it is after this heartbeat; the same object when nothing moves."""
    held = None if reported is None else {(topic_id, partition) for topic_id, some in reported for partition in some}
    if member.state == UNRELEASED:
        return _step(member, member.epoch, goal, held)
    if member.state in (STABLE, UNREVOKED):
        stays = member.epoch == goal.epoch if member.state == STABLE else _still_holds(member.revoking, held)
        if not stays:
            return _step(member, member.epoch, goal, held)
        return _strip(member, goal, held) if subscription_changed else member
    # A state that a newer release wrote. Whoever holds nothing can begin again; whoever holds something must rejoin.
    if held is None or held:
        raise Refused(FENCED_MEMBER_EPOCH, "the member is in an unknown state; it must give up everything and rejoin")
    return _step(member, goal.epoch, goal, held)


def _still_holds(owned: Owned, held: set[tuple[Uuid, int]] | None) -> bool:
    """A member that reports nothing has not said that it let go."""
    if held is None:
        return True
    return any((topic_id, partition) in held for topic_id, partitions in owned.items() for partition in partitions)


def _step(member: Member, epoch: int, goal: Goal, held: set[tuple[Uuid, int]] | None) -> Member:
    kept: dict[Uuid, dict[int, int]] = {}
    revoking: dict[Uuid, dict[int, int]] = {}
    gained: list[tuple[Uuid, list[int]]] = []
    waits = False
    for topic_id in member.assigned.keys() | goal.target.keys():
        target = goal.target.get(topic_id, frozenset()) if topic_id in goal.subscribed else frozenset()
        mine = member.assigned.get(topic_id, {})
        keep = {partition: since for partition, since in mine.items() if partition in target}
        lose = {partition: since for partition, since in mine.items() if partition not in target}
        wanted = [partition for partition in target if partition not in keep]
        # What it is letting go of itself may come right back to it: nobody else can have it yet.
        own = member.revoking.get(topic_id, {})
        free = [partition for partition in wanted if partition in own or goal.is_free(topic_id, partition)]
        waits |= len(free) < len(wanted)
        if keep:
            kept[topic_id] = keep
        if lose:
            revoking[topic_id] = lose
        if free:
            gained.append((topic_id, free))
    if revoking and _still_holds(revoking, held):
        return member.at_epoch(epoch, UNREVOKED, kept, revoking)
    for topic_id, free in gained:
        kept.setdefault(topic_id, {}).update(dict.fromkeys(free, goal.epoch))
    return member.at_epoch(goal.epoch, UNRELEASED if waits else STABLE, kept)


def _strip(member: Member, goal: Goal, held: set[tuple[Uuid, int]] | None) -> Member:
    """Takes away topics it no longer subscribes to, without waiting for a new target."""
    gone = {topic_id: mine for topic_id, mine in member.assigned.items() if topic_id not in goal.subscribed}
    if not gone:
        return member
    kept = {topic_id: mine for topic_id, mine in member.assigned.items() if topic_id not in gone}
    revoking: dict[Uuid, dict[int, int]] = {topic_id: dict(mine) for topic_id, mine in member.revoking.items()}
    for topic_id, mine in gone.items():
        revoking.setdefault(topic_id, {}).update(mine)
    if revoking and _still_holds(revoking, held):
        return member.at_epoch(member.epoch, UNREVOKED, kept, revoking)
    return member.at_epoch(member.epoch, member.state, kept, member.revoking)
