"""Clusters that begin old: nothing that a seed does to them is worse for the numbers that they count with."""

from __future__ import annotations

from random import Random

import pytest

from penstock.testing.ancient import Age
from penstock.testing.sim import run
from penstock.testing.sim.drawing import AGES, CENTURIES_MS, drawn

OLD = [age for age in AGES if age is not None]
SECONDS = 5.0


@pytest.mark.parametrize(
    ("age", "protocol", "century_ms"),
    [(age, ("classic", "consumer")[n % 2], CENTURIES_MS[-1 - n % 3]) for n, age in enumerate(OLD)],
    ids=[f"offset {age.offset}" for age in OLD],
)
def test_an_old_cluster_keeps_its_promises(age: Age, protocol: str, century_ms: int) -> None:
    plan = drawn(Random(age.offset), 3, SECONDS)
    plan.age, plan.century_ms, plan.group_protocol = age, century_ms, protocol
    plan.partitions, plan.record_every_s = 1, 0.03
    story = run(1, plan=plan)
    assert story.ok, story.text()
    assert story.counts["read"] > 100, "those that begin forty offsets before the end of a width have crossed it"


def test_seeds_draw_old_worlds_and_other_centuries() -> None:
    plans = [drawn(Random(seed), 3, SECONDS) for seed in range(200)]
    assert {plan.age for plan in plans} == set(AGES)
    assert {plan.century_ms for plan in plans} == set(CENTURIES_MS)
