"""A controller under seeded trouble: brokers that die, pause and come back, late requests, moves, failovers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from penstock.controller import brokers, elections, heartbeats, replicas
from penstock.metadata.entities import BrokerImage, PartitionImage
from tests.faults.counts import rounds
from tests.sim.controller.world import World

STEPS = 60
BUG_SEEDS = 1_000


def live(world: World) -> None:
    """A whole life: up, trouble, everything that was sent arrives."""
    world.begin()
    for _ in range(STEPS):
        world.step()
    world.deliver_all()
    world.check_at_end()


@pytest.mark.timeout(3_600)
def test_a_controller_keeps_its_promises() -> None:
    chosen = os.environ.get("PENSTOCK_SEED")
    for seed in [int(chosen)] if chosen else rounds(fast=200, full=100_000):
        world = World(seed)
        try:
            live(world)
        except Exception as broken:
            last = "\n".join(world.story[-40:])
            rerun = f"PENSTOCK_SEED={seed} python -m pytest tests/sim/controller"
            pytest.fail(f"seed {seed}: {type(broken).__name__}: {broken}\nrerun: {rerun}\n{last}")


def test_a_seed_tells_the_same_story_twice() -> None:
    first, second = World(7), World(7)
    live(first)
    live(second)
    assert first.story == second.story
    assert first.log.records == second.log.records


def fenced_and_still_in_sync(world: Any, broker: BrokerImage) -> Any:
    return real_fencing(world, broker)[-1:]


def whichever_life(world: Any, broker_id: int, _epoch: int) -> bool:
    return real_membership(world, broker_id, -1)


def every_restart_is_clean(world: Any, broker_id: int, _kept: bool) -> Any:
    return real_previous_life(world, broker_id, True)


def anybody_may_lead(old: PartitionImage, isr: Any, elr: Any, order: Any, change: Any) -> tuple[int, bool]:
    leader, unclean = real_election(old, isr, elr, order, change)
    alive = [each for each in order if change.acceptable(each)]
    return (alive[0], False) if leader < 0 and alive and not isr else (leader, unclean)


real_fencing = brokers.fence_records
real_membership = replicas._may_be_in_sync
real_previous_life = brokers._records_of_previous_life
real_election = elections._elect


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [
        (heartbeats, "fence_records", fenced_and_still_in_sync),
        (replicas, "_may_be_in_sync", whichever_life),
        (brokers, "_records_of_previous_life", every_restart_is_clean),
        (elections, "_elect", anybody_may_lead),
    ],
    ids=["fenced member kept", "epoch not looked at", "every restart clean", "unclean leader unnoticed"],
)
def test_a_planted_bug_is_found(
    where: Any, name: str, bug: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, bug)
    for seed in range(BUG_SEEDS):
        try:
            live(World(seed))
        except AssertionError:
            return
    pytest.fail(f"{BUG_SEEDS} seeds did not notice")
