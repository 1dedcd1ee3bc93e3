"""Plans keep their budgets, whatever the seed, and one seed has one plan."""

from __future__ import annotations

import pytest

from tests.faults.cluster.schedule import Kind, Planned, Planner, Takes, Verb, Wave

KINDS = [
    Kind("kill", Takes.PROCESS, crashes=True),
    Kind("pause", Takes.PROCESS),
    Kind("kill all", Takes.EVERY_PROCESS, crashes=True),
    Kind("power", Takes.PROCESS, loses=True),
    Kind("tear", Takes.PROCESS, loses=True),
    Kind("cut"),
    Kind("delay"),
    Kind("clock", Takes.CLOCK),
]
SEEDS = range(30)


def waves(seed: int, *, count: int = 100, at_once: int = 3) -> list[Wave]:
    return [*Planner(str(seed), KINDS, nodes=3, at_once=at_once).waves(count)]


def lasting(wave: Wave, at_s: float) -> list[Planned]:
    return [each for each in wave.faults if each.begins_s <= at_s < each.ends_s]


def test_one_seed_has_one_plan_and_another_has_another() -> None:
    assert waves(7) == waves(7)
    assert waves(7) != waves(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_has_as_many_faults_as_it_should_and_every_kind(seed: int) -> None:
    faults = [fault for wave in waves(seed) for fault in wave.faults]
    assert [fault.number for fault in faults] == [*range(1, 101)]
    assert {fault.kind for fault in faults} == set(KINDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_budgets_are_kept_at_every_instant(seed: int) -> None:
    for wave in waves(seed):
        if any(fault.kind.loses for fault in wave.faults):
            assert sum(fault.kind.loses or fault.kind.crashes for fault in wave.faults) == 1
        for instant in (fault.begins_s for fault in wave.faults):
            now = lasting(wave, instant)
            assert len(now) <= 3
            taking = [fault for fault in now if fault.kind.takes in (Takes.PROCESS, Takes.EVERY_PROCESS)]
            if any(fault.kind.takes is Takes.EVERY_PROCESS for fault in taking):
                assert len(taking) == 1, "one that takes every process leaves none to others"


@pytest.mark.parametrize("seed", SEEDS)
def test_faults_overlap_and_end_in_any_order(seed: int) -> None:
    plan = waves(seed)
    assert sum(wave.overlapping for wave in plan) > 50
    ends = [[act.fault.number for act in wave.acts() if act.verb is Verb.END] for wave in plan]
    assert any(order != sorted(order) for order in ends)
    for wave in plan:
        acts = wave.acts()
        assert len(acts) == 2 * len(wave.faults)
        for fault in wave.faults:
            began, ended = (acts.index((at, verb, fault)) for at, verb in
                            ((fault.begins_s, Verb.BEGIN), (fault.ends_s, Verb.END)))  # fmt: skip
            assert began < ended


def test_one_at_a_time_is_a_plan_too() -> None:
    assert sum(wave.overlapping for wave in waves(3, at_once=1)) == 0
