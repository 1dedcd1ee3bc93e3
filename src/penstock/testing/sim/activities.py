"""What nodes do by themselves, counted from outside a few times a second; and whether they are what they claim to be.

Retention, rolls, compaction, checkpoints, snapshots and expiry are asked for by nobody, so that a world in which one of
them never happens would look like any other. Three claims are held against what is: a node that leads the quorum hears
a majority; one that is ready knows the cluster as it is, give or take some seconds, and votes whatever its disk does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from penstock.testing.sim.replicas import metadata_of, partitions_of, quorum_of, shards_of, voter_of

if TYPE_CHECKING:
    from penstock.model.ids import PartitionKey
    from penstock.server.node import Node
    from penstock.server.partitions.hosted import Hosted
    from penstock.storage.log import Log
    from penstock.testing.sim.administrator import Administrator
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.world import World

LOOK_EVERY_S = 0.25
DEAF_S = 8.0
"""How long a leader may go on without a majority: less than two fetch timeouts, and a disk that hangs meanwhile."""

BEHIND_S = 15.0
"""How long a node may call itself ready that learns nothing new, while others do."""

HELD_S_MAX = 0.25
"""How long the loop that votes and sends heartbeats may be held by a disk."""

BY_THEMSELVES = (
    "segments rolled", "retention on leaders", "retention on followers", "logs compacted", "tombstones taken",
    "checkpoints written", "snapshots written", "producers expired", "positions expired",
    "replicas moved between directories",
)  # fmt: skip
"""What is counted here, or when the world is judged."""


class Replica(NamedTuple):
    """What was last seen of a log."""

    log: Log
    directory: str
    start: int
    active: int
    producers: int


class Life:
    """What was last seen of one life of a node."""

    def __init__(self) -> None:
        self.replicas: dict[PartitionKey, Replica] = {}
        self.compactions = self.checkpoints = 0
        self.snapshot: object = None
        self.deaf_since_s: float | None = None
        self.frozen_since: tuple[float, int] | None = None
        self.groups: set[str] = set()
        self.held_s: float | None = None
        """How long the loop that votes was held before the node called itself ready."""


class Activities:
    """Looks at all nodes until the world ends."""

    def __init__(self, world: World, admin: Administrator) -> None:
        self._world, self._admin, self._count = world, admin, world.story.count
        self._lives: dict[str, tuple[int, Life]] = {}
        self._published: deque[tuple[float, int]] = deque()

    def start(self) -> None:
        self._world.loop.create_task(self._run(), name="activities")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self._note_published()
            for machine in self._world.machines:
                if machine.node is not None and not machine.paused:
                    self._look(machine, machine.node)

    def _look(self, machine: Machine, node: Node) -> None:
        number, life = self._lives.get(machine.host, (-1, None))
        if life is None or number != machine.lives:
            life = Life()
            self._lives[machine.host] = machine.lives, life
        self._look_at_quorum(machine, node, life)
        self._look_at_claims(machine, node, life)
        partitions = partitions_of(node)
        if partitions is None or node._broker is None:
            return
        for hosted in partitions:
            if hosted.log is not None and hosted.log.failure is None:
                self._look_at_log(hosted, hosted.log, life)
        runs, writes = node._broker.compaction.runs, node._broker.checkpoints.writes
        self._count("logs compacted", runs - life.compactions)
        self._count("checkpoints written", writes - life.checkpoints)
        life.compactions, life.checkpoints = runs, writes
        self._look_at_groups(node, life)

    def _look_at_log(self, hosted: Hosted, log: Log, life: Life) -> None:
        segments = log.segments
        seen = Replica(log, log.directory, log.log_start, segments[-1].base, len(log.producers))
        before = life.replicas.get(hosted.key)
        life.replicas[hosted.key] = seen
        if before is None:
            return
        if before.directory.rpartition("/")[0] != seen.directory.rpartition("/")[0]:
            self._count("replicas moved between directories")
        if before.log is not log:
            return
        if seen.active > before.active:
            self._count("segments rolled")
        if seen.start > before.start:
            self._count("retention on leaders" if hosted.state.leading else "retention on followers")
        if seen.producers < before.producers and seen.active >= before.active:
            self._count("producers expired")

    def _look_at_groups(self, node: Node, life: Life) -> None:
        """Groups whose only position was committed for a moment, and that were seen here and are gone."""
        expiring = self._admin.expiring
        if not expiring:
            return
        here = {group for shard in shards_of(node) for group in shard.table.offsets if group in expiring}
        for group in sorted(life.groups - here):
            if group in expiring:
                self._count("positions expired")
                self._admin.expired(group)
        life.groups = here

    # -- claims

    def _look_at_quorum(self, machine: Machine, node: Node, life: Life) -> None:
        quorum = quorum_of(node)
        voter = None if quorum is None else voter_of(quorum)
        if quorum is None or voter is None or machine.clock is None:
            return
        newest = next(reversed(quorum.snapshots), None)
        if newest != life.snapshot:
            self._count("snapshots written")
            life.snapshot = newest
        leadership = voter.leadership
        now, now_s = machine.clock.monotonic_ms(), self._world.scheduler.now
        if leadership is None or not quorum.leading:
            life.deaf_since_s = None
            return
        heard_ms = now - leadership.majority_heard_ms(voter.voters, now)
        if heard_ms < 2 * node.settings.number("controller.quorum.fetch.timeout.ms"):
            life.deaf_since_s = None
        elif life.deaf_since_s is None:
            life.deaf_since_s = now_s
        elif now_s - life.deaf_since_s > DEAF_S:
            self._bad(machine, f"R8: it claims to lead the quorum and hears no majority for {heard_ms:.0f} ms")

    def _note_published(self) -> None:
        now_s = self._world.scheduler.now
        ends = [_published(machine.node) for machine in self._world.machines if machine.node is not None]
        self._published.append((now_s, max(ends, default=-1)))
        while len(self._published) > 1 and self._published[1][0] <= now_s - BEHIND_S:
            self._published.popleft()

    def _look_at_claims(self, machine: Machine, node: Node, life: Life) -> None:
        self._look_at_loop(machine, life)
        published, now_s = _published(node), self._world.scheduler.now
        if life.frozen_since is None or life.frozen_since[1] != published or not node.ready or node._obstacles():
            life.frozen_since = now_s, published
            return
        long_ago_s, was_published = self._published[0]
        if now_s - life.frozen_since[0] > BEHIND_S and now_s - long_ago_s >= BEHIND_S and published < was_published:
            self._bad(machine, f"R9: it calls itself ready and knows the cluster as it was {BEHIND_S:.0f} s ago")

    def _look_at_loop(self, machine: Machine, life: Life) -> None:
        if not machine.serving or machine.control_loop is None:
            return
        held_s = machine.control_loop.longest_hold_s
        if life.held_s is None:
            life.held_s = held_s
        elif held_s > max(life.held_s, HELD_S_MAX):
            self._bad(machine, f"R10: it is ready, and the loop that votes was held by a disk for {held_s:.1f} s")

    def _bad(self, machine: Machine, what: str) -> None:
        if not self._world.story.violations:
            self._world.story.violated(f"{machine.host}: {what}")


def _published(node: Node) -> int:
    metadata = metadata_of(node)
    return -1 if metadata is None else metadata.image.offset
