"""Classic groups under seeded faults: crashes, pauses, delays, doubles, losses, failovers and clocks that drift."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.faults.counts import rounds
from tests.sim.groups.classic_members import ClassicMember
from tests.sim.groups.faults import Faults
from tests.sim.groups.world import World

FAULTS_MS = 60_000
CALM_MS = 60_000
PARTITIONS = {"t": 4, "u": 3}


def populated(seed: int) -> World:
    """A world with two to five members of one protocol; some have a fixed instance."""
    world = World(seed, PARTITIONS)
    rng = Random(seed)
    cooperative = rng.random() < 0.5
    for number in range(rng.randint(2, 5)):
        instance = f"i{number}" if rng.random() < 0.4 else None
        world.add(ClassicMember(world, f"m{number}", ["t", "u"], instance=instance, cooperative=cooperative))
    return world


def simulate(seed: int) -> None:
    world = populated(seed)
    faults = world.faults
    try:
        world.trouble(FAULTS_MS)
        world.run(FAULTS_MS)
        world.faults = Faults.none()
        if len(world.members) > 1 and world.rng.random() < 0.5:
            world.kill(world.rng.choice(world.members))
            if world.rng.random() < 0.5:
                world.fail_over()
        world.run(FAULTS_MS + CALM_MS)
        world.check_settled()
    except Exception as broken:
        last = "\n".join(world.story[-30:])
        rerun = f"PENSTOCK_SEED={seed} python -m pytest tests/sim/groups/test_classic_members.py"
        pytest.fail(f"seed {seed}: {type(broken).__name__}: {broken}\nrerun: {rerun}\n{faults}\n{last}")


@pytest.mark.timeout(3_600)
def test_classic_groups_keep_their_promises() -> None:
    chosen = os.environ.get("PENSTOCK_SEED")
    for seed in [int(chosen)] if chosen else rounds(fast=200, full=10_000):
        simulate(seed)
