"""A disk that hangs on one node of three: nobody is deposed, no session runs out, and no loop that votes is held.

With Kafka's own timeouts. The broker's loop is held, and its clients wait; that is all.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from penstock.testing.sim.acts import brokers
from penstock.testing.sim.cluster import Simulation
from penstock.testing.sim.drawing import drawn
from penstock.testing.sim.machine import Machine
from penstock.testing.sim.plan import Plan
from penstock.testing.sim.replicas import metadata_of, quorum_of
from penstock.testing.sim.world import World
from tests.faults.counts import SOAKING

SEEDS = range(1, 60 if SOAKING else 2)
HANG_S = 5.0
HELD_S_MAX = 0.25
BETWEEN_S = 7.0
HANGS = 5 if SOAKING else 3
KAFKAS_OWN = (
    "broker.heartbeat.interval.ms", "broker.session.timeout.ms", "controller.quorum.election.timeout.ms",
    "controller.quorum.election.backoff.max.ms", "controller.quorum.fetch.timeout.ms",
    "controller.quorum.request.timeout.ms", "replica.lag.time.max.ms", "replica.socket.timeout.ms",
    "request.timeout.ms", "penstock.log.dir.hang.timeout.ms",
)  # fmt: skip


class Watch:
    """Looks ten times a second at who leads the quorum and who is fenced, from when everything serves."""

    def __init__(self, simulation: Simulation) -> None:
        self._world, self.seen = simulation.world, set[str]()
        self.hung: list[str] = []

    def begin(self) -> None:
        world = self._world
        self._epochs = {machine.host: self._epoch(machine) for machine in world.machines}
        self._look()
        self._hang(Random(world.seed), HANGS)

    @staticmethod
    def _epoch(machine: Machine) -> int:
        quorum = quorum_of(machine.node) if machine.node is not None else None
        assert quorum is not None, "it serves"
        return quorum.epoch

    def _look(self) -> None:
        for machine in self._world.machines:
            metadata = metadata_of(machine.node) if machine.node is not None else None
            assert metadata is not None, "it serves"
            if self._epoch(machine) != self._epochs[machine.host]:
                self.seen.add(f"{machine.host} has seen an election")
            self.seen |= {f"broker {each.id} is fenced" for each in metadata.image.brokers.values() if each.fenced}
        self._world.loop.call_later(0.1, self._look)

    def _hang(self, random: Random, left: int) -> None:
        if left:
            machine = random.choice(self._world.machines)
            self.hung.append(machine.host)
            machine.disk.hang("/", HANG_S)
            self._world.loop.call_later(HANG_S + random.random() * (BETWEEN_S - HANG_S), self._hang, random, left - 1)


class Hanging(Simulation):
    """The usual life of a cluster; the only trouble are disks that hang."""

    def __init__(self, world: World, plan: Plan) -> None:
        super().__init__(world, plan)
        self.watch = Watch(self)
        self.trouble.start = self.watch.begin  # type: ignore[method-assign]


def plan_of(world: World) -> Plan:
    """As the seed draws it, but with Kafka's own timeouts."""
    plan = drawn(world.new_random(), 3, HANGS * BETWEEN_S)
    for name in KAFKAS_OWN:
        plan.properties.pop(name, None)
    # Brokers that come and go on purpose are no sessions that ran out.
    comings = {chore.name for chore in brokers.CHORES}
    plan.chores = {name: weight for name, weight in plan.chores.items() if name not in comings}
    return plan


@pytest.fixture(params=SEEDS)
def lived(request: pytest.FixtureRequest) -> Iterator[Hanging]:
    world = World(request.param)
    with world.alive():
        simulation = Hanging(world, plan_of(world))
        simulation.live()
        yield simulation


def test_nobody_is_deposed_or_missed_while_a_disk_hangs(lived: Hanging) -> None:
    assert lived.story.ok, lived.story.text()
    assert lived.watch.seen == set(), lived.watch.hung
    holds = {machine.host: [loop.longest_hold_s for loop in machine.loops] for machine in lived.world.machines}
    assert max(control for _, control in holds.values()) <= HELD_S_MAX, holds
    assert max(broker for broker, _ in holds.values()) > HELD_S_MAX, "nobody touched a hanging disk"


class ForGood(Simulation):
    """One disk hangs for a minute: longer than a directory may."""

    def __init__(self, world: World) -> None:
        plan = plan_of(world)
        plan.trouble_s = 70.0
        super().__init__(world, plan)
        self.victim: Machine | None = None
        self.ended_s: float | None = None
        self.fenced = self.led_elsewhere = False
        self.trouble.start = self._hang  # type: ignore[method-assign]

    def _hang(self) -> None:
        self.began_s = self.world.scheduler.now
        self.victim = self.world.machines[self.world.seed % len(self.world.machines)]
        self.victim.troubled = True  # it may say what it thinks of its disk
        self.victim.disk.hang("/", 60.0)
        self._look(self.victim)

    def _look(self, victim: Machine) -> None:
        if not victim.up and self.ended_s is None:
            self.ended_s = self.world.scheduler.now - self.began_s
        for machine in self.world.machines:
            metadata = metadata_of(machine.node) if machine is not victim and machine.node is not None else None
            if metadata is not None and self.ended_s is not None:
                partitions = [each for topic in metadata.image.topics.values() for each in topic.partitions]
                self.fenced |= metadata.image.brokers[victim.node_id].fenced
                self.led_elsewhere |= all(each.leader not in (victim.node_id, -1) for each in partitions)
        self.world.loop.call_later(0.1, self._look, victim)


def test_a_disk_that_hangs_for_good_ends_its_node_and_nobody_elses() -> None:
    world = World(7)
    with world.alive():
        simulation = ForGood(world)
        simulation.live()
    assert simulation.story.ok, simulation.story.text()
    assert simulation.ended_s is not None
    assert 30 <= simulation.ended_s <= 33
    assert simulation.fenced
    assert simulation.led_elsewhere
    assert [machine.lives for machine in world.machines if machine is not simulation.victim] == [1, 1]
