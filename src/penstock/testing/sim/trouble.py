"""What goes wrong, when and for how long, as the seed says; and that all of it is made good at the end.

The fault model: unsynced bytes are lost on fewer nodes than `min.insync.replicas` before all replicas are in sync
again. A controller cannot tell a machine that lost bytes from one whose process died: both come back uncleanly, and the
last of them that was in sync leads. So until all are in sync again, a machine that lost power, or whose disk came back
old or empty, is the only one that ended uncleanly. Anything else may happen to any of them at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.model.ids import NO_NODE
from penstock.testing.sim.founding import directory_id
from penstock.testing.sim.plan import Plan, Possible, always
from penstock.testing.sim.replicas import metadata_of, partitions_of, quorum_of
from penstock.testing.sim.topics import LEDGER, ORDERS

if TYPE_CHECKING:
    from penstock.metadata.entities import PartitionImage
    from penstock.metadata.image import ClusterImage
    from penstock.model.ids import PartitionKey, Uuid
    from penstock.server.quorum.driver import QuorumDriver
    from penstock.testing.sim.founding import Founding
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.world import World

LOOK_EVERY_S = 0.1
TOLD_WITHIN_S = 3.0
"""Without trouble a controller has learnt within it that a directory failed, and others lead its partitions."""


def leading_quorum(world: World) -> tuple[QuorumDriver, ClusterImage] | None:
    """The active controller's quorum and what it has published, if there is exactly one who leads."""
    found = []
    for machine in world.machines:
        node = machine.node
        quorum = quorum_of(node) if node is not None else None
        if node is not None and quorum is not None and quorum._node is not None and quorum.leading:
            metadata = metadata_of(node)
            if metadata is not None:
                found.append((quorum, metadata.image))
    return found[0] if len(found) == 1 else None


def controller_image(world: World) -> ClusterImage | None:
    found = leading_quorum(world)
    return None if found is None else found[1]


def image_of(world: World, place: tuple[str, int]) -> PartitionImage | None:
    """A partition as the active controller sees it."""
    image = controller_image(world)
    topic = None if image is None else image.topic(place[0])
    return None if topic is None or place[1] >= len(topic.partitions) else topic.partitions[place[1]]


def absent_voters(world: World, plan: Plan) -> list[str]:
    """Controllers whose disk is not the one that the quorum knows them by; all of them while nobody leads."""
    found = leading_quorum(world)
    known: dict[int, Uuid] = {} if found is None else {each.key.id: each.key.directory for each in found[0].voters}
    return [
        machine.host
        for machine in world.machines
        if machine.node_id in plan.controllers and known.get(machine.node_id) != directory_id(machine)
    ]


def _leader(image: ClusterImage, key: PartitionKey) -> int:
    topic = image.topics.get(key.topic_id)
    return NO_NODE if topic is None else topic.partitions[key.partition].leader


def all_in_sync(image: ClusterImage) -> bool:
    return all(
        set(partition.isr) == set(partition.replicas)
        for topic in image.topics.values()
        for partition in topic.partitions
    )


@dataclass(frozen=True, slots=True)
class Mishap:
    """Something that goes wrong. Its deed does it and gives back how it is made good, or None when it must not be."""

    name: str
    deed: Callable[[Trouble, Random], Coroutine[Any, Any, None] | None]
    chance: float = 0.5
    possible: Possible = always


async def for_good() -> None:
    """What a deed gives back when nobody has to make it good, or all is made good at the end."""


class Trouble:
    """Makes trouble until it is told to stop; `make_good` ends all of it."""

    def __init__(self, world: World, plan: Plan, founding: Founding, random: Random, mishaps: Sequence[Mishap]) -> None:
        self.world, self.plan, self.founding, self._random = world, plan, founding, random
        self.tell, self.count = world.story.tell, world.story.count
        self._mishaps = mishaps
        self._tasks: dict[asyncio.Task[None], None] = {}

    def start(self) -> None:
        network, plan = self.world.network, self.plan
        network.drop_rate, network.split_rate = plan.drop_rate, plan.split_rate
        self.begin(self._run())

    def make_good(self) -> None:
        """Heals the network and the disks, and lets every machine run."""
        for task in list(self._tasks):
            task.cancel()
        self._tasks.clear()
        self.world.network.heal()
        for machine in self.world.machines:
            self.mend(machine)
            machine.resume()
        self.begin(self._keep_up())

    async def _keep_up(self) -> None:
        """Whoever has ended is started, and whoever was about to stop as soon as it has."""
        good_from_s = self.world.loop.time()
        while True:
            for machine in self.world.machines:
                failing = machine.troubled and machine.up and not machine.disk.hanging
                if failing and self._has_told(machine, good_from_s):
                    machine.kill()  # a directory that failed comes back with the next life
                if not machine.up and not machine.retired:
                    self._start(machine)
            await asyncio.sleep(LOOK_EVERY_S)

    def _has_told(self, machine: Machine, good_from_s: float) -> bool:
        """Whether nobody is sent any more to partitions of a directory that failed; not so for long is a violation."""
        image = controller_image(self.world)
        partitions = None if machine.node is None else partitions_of(machine.node)
        if partitions is None:
            return True
        lost = [hosted for hosted in partitions if hosted.log is None or hosted.log.failure is not None]
        if not lost:
            return True
        if image is not None:
            led = [each.name for each in lost if _leader(image, each.key) == machine.node_id]
            if not led:
                return True
            if self.world.loop.time() - good_from_s > TOLD_WITHIN_S:
                self.world.story.violated(f"{machine.host} leads {led[0]} without the directory that it was in")
                return True
        return False

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.world.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _run(self) -> None:
        plan, random = self.plan, self._random
        mishaps = [mishap for mishap in self._mishaps if mishap.name in plan.mishaps]
        weights = [plan.mishaps[mishap.name] for mishap in mishaps]
        while mishaps:
            await asyncio.sleep(random.expovariate(1 / plan.between_mishaps_s))
            self._look_around()
            mishap = random.choices(mishaps, weights)[0]
            aftermath = mishap.deed(self, random)
            if aftermath is not None:
                self.count(mishap.name)
                self.begin(aftermath)

    def _look_around(self) -> None:
        """Machines that ended by themselves come back; once all replicas are in sync a power cut is forgiven."""
        machines = self.world.machines
        for machine in machines:
            if not machine.up and not machine.down_on_purpose:
                self.begin(self.revive(machine))
        image = controller_image(self.world)
        if image is not None and all_in_sync(image) and all(machine.serving for machine in machines):
            for machine in machines:
                # One whose disk failed is in sync elsewhere, and will be killed for a new disk all the same.
                machine.unclean, machine.power_lost = machine.troubled, False

    # -- what mishaps ask for

    def running(self) -> list[Machine]:
        return [machine for machine in self.world.machines if machine.up and not machine.paused and not machine.retired]

    def victim(self, *, up: bool = True) -> Machine | None:
        """Somebody who runs; with `up` nobody when enough are down already."""
        down = sum(1 for machine in self.world.machines if not machine.up or machine.paused)
        running = self.running()
        if not running or (up and down >= self.plan.down_at_once):
            return None
        return self._random.choice(running)

    async def a_while(self) -> None:
        await asyncio.sleep(self._random.uniform(*self.plan.pause_s))

    def may_be_hurt(self, machine: Machine) -> bool:
        """Whether a machine that was chosen may go away just now."""
        down = sum(1 for each in self.world.machines if not each.up or each.paused)
        return down < self.plan.down_at_once and machine in self.running()

    def may_end_uncleanly(self, victim: Machine, *, loses_bytes: bool = False) -> bool:
        others = [machine for machine in self.world.machines if machine is not victim]
        if loses_bytes:
            return self.plan.min_in_sync > 1 and not any(each.unclean for each in others)
        return not any(each.power_lost for each in others)

    def voters_are_well(self, *, but: Machine) -> bool:
        """Whether the quorum can lose the disk of one voter: all are voters and serve, and two of them are others."""
        controllers = [machine for machine in self.world.machines if machine.node_id in self.plan.controllers]
        others = [machine for machine in controllers if machine is not but]
        return len(others) > 1 and all(each.serving for each in others) and not absent_voters(self.world, self.plan)

    async def revive(self, machine: Machine) -> None:
        """Starts a machine that is down, after a while."""
        machine.down_on_purpose = True
        await self.a_while()
        self.mend(machine)
        if not machine.up and not machine.retired:
            self._start(machine)

    def _start(self, machine: Machine) -> None:
        plan, random = self.plan, self._random
        machine.down_on_purpose = False
        machine.wall_ahead_ms = random.randint(-plan.clock_skew_ms, plan.clock_skew_ms)
        machine.rate = 1.0 + random.uniform(-plan.clock_drift, plan.clock_drift)
        machine.start()

    def hosts(self) -> list[str]:
        return [machine.host for machine in self.world.machines]

    def breakable(self, machine: Machine) -> list[str]:
        """Where a disk may fail: everywhere, in one directory, or for one partition."""
        directories = self.plan.log_dirs(machine.node_id)
        topic = ORDERS if self.plan.transactions is None else LEDGER
        return ["/", *(f"{directory}/" for directory in directories), f"{directories[0]}/{topic}-0"]

    def mend(self, machine: Machine) -> None:
        for prefix in self.breakable(machine):
            machine.disk.mend(prefix)
