"""Nothing that a cluster does in years is missing from the world: of a hundred seeds each of it happens in ten."""

from __future__ import annotations

import os
from collections import Counter
from multiprocessing import get_context

import pytest

from penstock.testing.sim import run
from penstock.testing.sim.activities import BY_THEMSELVES
from penstock.testing.sim.acts import CHORES, MISHAPS
from penstock.testing.sim.drawing import drawn
from penstock.testing.sim.plan import Plan
from penstock.testing.sim.world import World
from tests.faults.counts import MINUTES, SOAKING
from tests.sim.cluster.seeds import SECONDS, SHAPES

SEEDS = range(1, 101)
A_TENTH = len(SEEDS) // 10
ALSO = ("clients of any age", "old disks", "disks with room again", "clusters emptied")
"""What an act leads to, or clients are."""

FEW = 2
EVERYWHERE = ("segments rolled", "checkpoints written")


def planned(seed: int) -> Plan:
    return drawn(World(seed).new_random(), SHAPES[seed % len(SHAPES)], SECONDS)


def test_every_act_takes_part_in_a_tenth_of_all_worlds() -> None:
    plans = [planned(seed) for seed in SEEDS]
    taking_part = Counter(name for plan in plans for name in (*plan.chores, *plan.mishaps))
    assert [act.name for act in (*CHORES, *MISHAPS) if taking_part[act.name] < A_TENTH] == []
    assert sum(plan.version_caps for plan in plans) >= A_TENTH
    assert sum(plan.producers_expire for plan in plans) >= A_TENTH


def test_no_act_is_named_twice() -> None:
    names = [*(act.name for act in (*CHORES, *MISHAPS)), *BY_THEMSELVES, *ALSO]
    assert len(set(names)) == len(names)


def happened(seed: int) -> list[str]:
    story = run(seed, nodes=SHAPES[seed % len(SHAPES)], seconds=SECONDS)
    assert story.ok, story.text()
    return list(story.counts)


@pytest.mark.timeout(MINUTES * 60 + 3_600)
def test_everything_happens_in_a_tenth_of_all_worlds() -> None:
    """`make test` has time for a few worlds, which show what is in all of them."""
    if SOAKING:
        with get_context("spawn").Pool(os.cpu_count() or 1) as pool:
            worlds = Counter(name for names in pool.map(happened, SEEDS, chunksize=1) for name in names)
        wanted, least = [*(act.name for act in (*CHORES, *MISHAPS)), *BY_THEMSELVES, *ALSO], A_TENTH
    else:
        worlds = Counter(name for seed in SEEDS[:FEW] for name in happened(seed))
        wanted, least = [*EVERYWHERE], FEW
    assert {name: worlds[name] for name in wanted if worlds[name] < least} == {}
