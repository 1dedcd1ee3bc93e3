"""Carrying out a plan: a few partitions at a time, under a throttle that goes away again, with a count of it all."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.model.errors import PenstockError
from penstock.model.units import count
from penstock.operations.moving.plan import Move

if TYPE_CHECKING:
    from penstock.client.admin import Admin, ConfigResource, LogDirInfo
    from penstock.model.ids import TopicPartition

AT_ONCE = 20
FIRST_LOOK_S, LOOK_EVERY_S = 0.05, 1.0
REORDERED_AT_ONCE = 500

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


@dataclass(frozen=True, slots=True)
class Pace:
    """How many partitions move at once, and how many bytes a second each broker may give and take for it."""

    at_once: int = AT_ONCE
    bytes_per_s: int | None = None


@dataclass(slots=True)
class Tally:
    """How far a plan has come."""

    partitions: int
    bytes: int
    partitions_done: int = 0
    bytes_done: int = 0
    waiting_for: list[TopicPartition] = field(default_factory=list)


async def carry_out(
    admin: Admin,
    plan: Sequence[Move],
    pace: Pace,
    *,
    alive: Iterable[int],
    sizes: Mapping[TopicPartition, int],
    report: Callable[[Tally], None] = lambda _: None,
) -> None:
    """Moves until all is where the plan has it, then lets the preferred leaders lead.

    Whoever is interrupted leaves moves behind that go on, and no throttle.
    """
    copied = [move for move in plan if move.adding]
    reordered = [move for move in plan if not move.adding]
    async with throttled(admin, copied, pace.bytes_per_s, alive):
        await _copy(admin, copied, pace.at_once, sizes, report)
    for first in range(0, len(reordered), REORDERED_AT_ONCE):
        await begin(admin, reordered[first : first + REORDERED_AT_ONCE])
    led_anew = [move.partition for move in plan if move.before[0] != move.after[0]]
    if led_anew:
        # Those that cannot lead yet are led later: the controller looks after preferred leaders by itself.
        await admin.elect_leaders(led_anew)


async def begin(admin: Admin, plan: Sequence[Move]) -> None:
    """Asks for moves and does not wait for them. A topic that was deleted meanwhile needs none."""
    from penstock.client.errors import UnknownTopic

    results = await admin.alter_partition_reassignments({move.partition: move.after for move in plan})
    for failure in results.failed.values():
        if not isinstance(failure, UnknownTopic):
            raise failure


async def _copy(
    admin: Admin,
    plan: Sequence[Move],
    at_once: int,
    sizes: Mapping[TopicPartition, int],
    report: Callable[[Tally], None],
) -> None:
    waiting = deque(plan)
    running: dict[TopicPartition, Move] = {}
    tally = Tally(len(plan), sum(copied_bytes(move, sizes) for move in plan))
    pause_s = FIRST_LOOK_S
    while waiting or running:
        while waiting and len(running) < at_once:
            # Asked for together, so that a round costs the controller one batch of records.
            batch = [waiting.popleft() for _ in range(min(len(waiting), at_once - len(running)))]
            await begin(admin, batch)
            running.update((move.partition, move) for move in batch)
        under_way = await admin.list_partition_reassignments(running)
        ended = [item for item in running if item not in under_way]
        for item in ended:
            tally.partitions_done += 1
            tally.bytes_done += copied_bytes(running.pop(item), sizes)
        tally.waiting_for = list(running)
        report(tally)
        if running:
            pause_s = FIRST_LOOK_S if ended else min(LOOK_EVERY_S, pause_s * 1.5)
            await asyncio.sleep(pause_s)


def copied_bytes(move: Move, sizes: Mapping[TopicPartition, int]) -> int:
    return len(move.adding) * sizes.get(move.partition, 0)


def partition_sizes(log_dirs: Mapping[int, Sequence[LogDirInfo]]) -> dict[TopicPartition, int]:
    """How large each partition is: as large as its largest replica."""
    from penstock.model.ids import TopicPartition

    sizes: dict[TopicPartition, int] = {}
    for dirs in log_dirs.values():
        for directory in dirs:
            for replica in directory.replicas:
                item = TopicPartition(replica.topic, replica.partition)
                sizes[item] = max(sizes.get(item, 0), replica.size_bytes)
    return sizes


# -- throttles


def throttle_configs(
    plan: Sequence[Move], bytes_per_s: int, alive: Iterable[int]
) -> dict[ConfigResource, dict[str, str | None]]:
    """What has to be set so that these moves, and no other replication, keep to a rate."""
    from penstock.client.admin.configs import ConfigResource

    involved = {node for move in plan for node in (*move.before, *move.after)}
    rates: dict[str, str | None] = {LEADER_RATE: str(bytes_per_s), FOLLOWER_RATE: str(bytes_per_s)}
    changes = {ConfigResource.broker(node): dict(rates) for node in sorted(involved & set(alive))}
    by_topic: dict[str, tuple[list[str], list[str]]] = {}
    for move in plan:
        givers, takers = by_topic.setdefault(move.partition.topic, ([], []))
        givers += [f"{move.partition.partition}:{node}" for node in move.before]
        takers += [f"{move.partition.partition}:{node}" for node in move.adding]
    for topic, (givers, takers) in sorted(by_topic.items()):
        changes[ConfigResource.topic(topic)] = {LEADERS: ",".join(givers), FOLLOWERS: ",".join(takers)}
    return changes


@asynccontextmanager
async def throttled(
    admin: Admin, plan: Sequence[Move], bytes_per_s: int | None, alive: Iterable[int]
) -> AsyncIterator[None]:
    """Sets the throttle of some moves and puts everything back as it was, whatever happens meanwhile."""
    if bytes_per_s is None or not plan:
        yield
        return
    wanted = throttle_configs(plan, bytes_per_s, alive)
    before = await _values_set(admin, wanted)
    try:
        (await admin.alter_configs(wanted)).checked()
        yield
    finally:
        await _restore(admin, before)


async def _values_set(
    admin: Admin, wanted: Mapping[ConfigResource, Mapping[str, str | None]]
) -> dict[ConfigResource, dict[str, str | None]]:
    """What was set before on these very resources; None where nothing was."""
    found = (await admin.describe_configs(wanted)).checked()
    before: dict[ConfigResource, dict[str, str | None]] = {}
    for resource, changes in wanted.items():
        entries = found[resource]
        before[resource] = {
            name: entries[name].value if name in entries and entries[name].source == resource.kind else None
            for name in changes
        }
    return before


async def _restore(admin: Admin, before: Mapping[ConfigResource, Mapping[str, str | None]]) -> None:
    from penstock.client.errors import UnknownTopic

    results = await admin.alter_configs(before)
    left = {str(resource): why for resource, why in results.failed.items() if not isinstance(why, UnknownTopic)}
    if left:
        where, why = next(iter(left.items()))
        raise PenstockError(
            f"the throttle of {count('resource', len(left))} is still there ({where}: {why}); take it away with"
            f" `penstock cluster config set --broker ID -d {LEADER_RATE} -d {FOLLOWER_RATE}`"
        )
