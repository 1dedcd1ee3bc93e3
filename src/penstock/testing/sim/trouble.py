"""What goes wrong, when and for how long, as the seed says; and that all of it is made good at the end.

The fault model: unsynced bytes are lost on fewer nodes than `min.insync.replicas` before all replicas are in sync
again. A controller cannot tell a machine that lost bytes from one whose process died: both come back uncleanly, and the
last of them that was in sync leads. So until all are in sync again, a machine that lost power is the only one that
ended uncleanly. Anything else may happen to any of them at any time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.testing.sim.replicas import metadata_of, quorum_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from random import Random
    from typing import Any

    from penstock.metadata.image import ClusterImage
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.world import World

RESTART_PATIENCE_S = 15.0
LOOK_EVERY_S = 0.1


def controller_image(world: World) -> ClusterImage | None:
    """What the active controller has published, if there is exactly one who leads."""
    images = []
    for machine in world.machines:
        node = machine.node
        quorum = quorum_of(node) if node is not None else None
        if node is not None and quorum is not None and quorum._node is not None and quorum.leading:
            metadata = metadata_of(node)
            if metadata is not None:
                images.append(metadata.image)
    return images[0] if len(images) == 1 else None


def all_in_sync(image: ClusterImage) -> bool:
    return all(
        set(partition.isr) == set(partition.replicas)
        for topic in image.topics.values()
        for partition in topic.partitions
    )


class Trouble:
    """Makes trouble until it is told to stop; `make_good` ends all of it."""

    def __init__(self, world: World, plan: Plan, random: Random) -> None:
        self._world, self._plan, self._random = world, plan, random
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._stopped = False

    def start(self) -> None:
        network, plan = self._world.network, self._plan
        network.drop_rate, network.split_rate = plan.drop_rate, plan.split_rate
        self._begin(self._run())

    def make_good(self) -> None:
        """Heals the network and the disks, and lets every machine run."""
        self._stopped = True
        for task in list(self._tasks):
            task.cancel()
        self._tasks.clear()
        self._world.network.heal()
        for machine in self._world.machines:
            self._mend(machine)
            machine.resume()
            if machine.troubled and machine.up:
                machine.kill()  # a directory that failed comes back with the next life
        self._begin(self._keep_up())

    async def _keep_up(self) -> None:
        """Whoever has ended is started, and whoever was about to stop as soon as it has."""
        while True:
            for machine in self._world.machines:
                if not machine.up:
                    self._start(machine)
            await asyncio.sleep(LOOK_EVERY_S)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._world.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _run(self) -> None:
        plan, random = self._plan, self._random
        names = sorted(plan.troubles)
        weights = [plan.troubles[name] for name in names]
        while names:
            await asyncio.sleep(random.expovariate(1 / plan.between_troubles_s))
            self._look_around()
            trouble = random.choices(names, weights)[0]
            work = getattr(self, f"_{trouble}")()
            if work is not None:
                self._world.story.count(trouble)
                self._begin(work)

    def _look_around(self) -> None:
        """Machines that ended by themselves come back; once all replicas are in sync a power cut is forgiven."""
        for machine in self._world.machines:
            if not machine.up and not machine.down_on_purpose:
                self._begin(self._revive(machine))
        image = controller_image(self._world)
        if image is not None and all_in_sync(image) and all(machine.serving for machine in self._world.machines):
            for machine in self._world.machines:
                machine.unclean = machine.power_lost = False

    # -- machines

    def _victim(self, *, up: bool = True) -> Machine | None:
        """Somebody who runs, unless enough are down already."""
        machines = self._world.machines
        down = sum(1 for machine in machines if not machine.up or machine.paused)
        running = [machine for machine in machines if machine.up and not machine.paused]
        if not running or (up and down >= self._plan.down_at_once):
            return None
        return self._random.choice(running)

    def _a_while_s(self) -> float:
        return self._random.uniform(*self._plan.pause_s)

    def _may_end_uncleanly(self, victim: Machine, *, loses_bytes: bool = False) -> bool:
        others = [machine for machine in self._world.machines if machine is not victim]
        if loses_bytes:
            return self._plan.min_in_sync > 1 and not any(each.unclean for each in others)
        return not any(each.power_lost for each in others)

    def _kill(self) -> Coroutine[Any, Any, None] | None:
        victim = self._victim()
        if victim is None or not self._may_end_uncleanly(victim):
            return None
        victim.kill()
        return self._revive(victim)

    def _power(self) -> Coroutine[Any, Any, None] | None:
        victim = self._victim()
        if victim is None or not self._may_end_uncleanly(victim, loses_bytes=True):
            return None
        victim.cut_power()
        return self._revive(victim)

    async def _revive(self, machine: Machine) -> None:
        machine.down_on_purpose = True
        await asyncio.sleep(self._a_while_s())
        self._mend(machine)
        if not machine.up:
            self._start(machine)

    def _start(self, machine: Machine) -> None:
        plan, random = self._plan, self._random
        machine.down_on_purpose = False
        machine.wall_ahead_ms = random.randint(-plan.clock_skew_ms, plan.clock_skew_ms)
        machine.rate = 1.0 + random.uniform(-plan.clock_drift, plan.clock_drift)
        machine.start()

    def _pause(self) -> Coroutine[Any, Any, None] | None:
        victim = self._victim()
        if victim is None:
            return None
        victim.pause()
        life = victim.lives

        async def go_on() -> None:
            await asyncio.sleep(self._a_while_s())
            if victim.lives == life:
                victim.resume()

        return go_on()

    def _restart(self) -> Coroutine[Any, Any, None] | None:
        """A clean stop, as in a rolling restart, and a start soon after."""
        victim = self._victim()
        if victim is None or not victim.serving:
            return None
        life = victim.lives
        victim.down_on_purpose = True
        ended = victim.stop()

        async def come_back() -> None:
            try:
                async with asyncio.timeout(RESTART_PATIENCE_S):
                    await ended
            except TimeoutError:
                # With its peers away it may wait for long; whoever runs it loses patience.
                if victim.lives == life and victim.up and self._may_end_uncleanly(victim):
                    victim.resume()
                    victim.kill()
            await ended
            await self._revive(victim)

        return come_back()

    # -- the network

    def _hosts(self) -> list[str]:
        return [machine.host for machine in self._world.machines]

    def _cut(self, pairs: list[tuple[str, str]], words: str) -> Coroutine[Any, Any, None]:
        network = self._world.network
        self._world.story.tell("network", words)
        for source, target in pairs:
            network.block(source, target)

        async def heal() -> None:
            await asyncio.sleep(self._a_while_s())
            self._world.story.tell("network", f"over: {words}")
            network.unblock(pairs)

        return heal()

    def _isolate(self) -> Coroutine[Any, Any, None]:
        hosts = self._hosts()
        alone = self._random.choice(hosts)
        pairs = [pair for other in hosts if other != alone for pair in ((alone, other), (other, alone))]
        return self._cut(pairs, f"{alone} is cut off from the others")

    def _one_way(self) -> Coroutine[Any, Any, None]:
        hosts = self._hosts()
        deaf = self._random.choice(hosts)
        others = [other for other in hosts if other != deaf]
        if self._random.random() < 0.5:
            others = [self._random.choice(others)]
        if self._random.random() < 0.5:
            return self._cut([(other, deaf) for other in others], f"{deaf} hears nothing from {', '.join(others)}")
        return self._cut([(deaf, other) for other in others], f"{', '.join(others)} hear nothing from {deaf}")

    def _split(self) -> Coroutine[Any, Any, None]:
        hosts = self._hosts()
        self._random.shuffle(hosts)
        at = self._random.randrange(1, len(hosts))
        left, right = hosts[:at], hosts[at:]
        pairs = [pair for one in left for other in right for pair in ((one, other), (other, one))]
        return self._cut(pairs, f"{', '.join(sorted(left))} | {', '.join(sorted(right))}")

    def _slow_link(self) -> None:
        source, target = self._random.sample(self._hosts(), 2)
        extra_s = self._random.choice((0.02, 0.2, 1.0))
        self._world.story.tell("network", f"{source} to {target} takes {extra_s} s more")
        self._world.network.slow(source, target, extra_s)

    def _cut_connections(self) -> None:
        """Connections that stand are lost, each for itself."""
        network = self._world.network
        rate = self._random.choice((0.1, 0.5, 1.0))
        self._world.story.tell("network", "connections are lost")
        for end in network.open_ends():
            if not end.peer.loop.dead and self._random.random() < rate / 2:
                network.reset(end)

    # -- disks

    def _slow_disk(self) -> None:
        victim = self._victim(up=False)
        if victim is not None:
            victim.disk.slow_s = self._random.choice((0.05, 0.5))
            self._world.story.tell(victim.host, f"its disk takes up to {victim.disk.slow_s} s for a sync")

    def _broken_disk(self) -> Coroutine[Any, Any, None] | None:
        return self._break(full=False)

    def _full_disk(self) -> Coroutine[Any, Any, None] | None:
        return self._break(full=True)

    def _break(self, *, full: bool) -> Coroutine[Any, Any, None] | None:
        victim = self._victim()
        if victim is None or victim.troubled or not self._may_end_uncleanly(victim):
            return None
        victim.troubled = victim.unclean = True
        prefix = self._random.choice(("/", f"/data/node-{victim.node_id}/orders-0"))
        self._world.story.tell(victim.host, f"its disk {'is full' if full else 'fails'} under {prefix}")
        victim.disk.break_down(prefix, full=full)

        async def replace() -> None:
            await asyncio.sleep(self._a_while_s())
            if victim.up:
                victim.resume()
                victim.kill()
            await self._revive(victim)

        return replace()

    @staticmethod
    def _mend(machine: Machine) -> None:
        machine.disk.mend("/")
        machine.disk.mend(f"/data/node-{machine.node_id}/orders-0")
