"""A controller under seeded trouble: brokers that die, pause and come back, late requests, moves, failovers."""

from __future__ import annotations

import os

import pytest

from tests.faults.counts import rounds
from tests.sim.controller.world import World

STEPS = 60


def judged(seed: int) -> None:
    """Runs a seed; a broken promise is told with its story."""
    world = World(seed)
    try:
        world.begin()
        for _ in range(STEPS):
            world.step()
        world.deliver_all()
        world.check_at_end()
    except Exception as broken:
        last = "\n".join(world.story[-40:])
        rerun = f"PENSTOCK_SEED={seed} python -m pytest tests/sim/controller"
        pytest.fail(f"seed {seed}: {type(broken).__name__}: {broken}\nrerun: {rerun}\n{last}")


@pytest.mark.timeout(3_600)
def test_a_controller_keeps_its_promises() -> None:
    chosen = os.environ.get("PENSTOCK_SEED")
    for seed in [int(chosen)] if chosen else rounds(fast=200, full=100_000):
        judged(seed)
