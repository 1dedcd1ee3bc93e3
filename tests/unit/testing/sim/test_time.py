"""Virtual time: order, pauses, deaths, clocks that run at their own pace."""

from __future__ import annotations

import asyncio

from penstock.testing.sim.loop import SimLoop
from penstock.testing.sim.scheduler import MOMENT_S
from penstock.testing.sim.world import World


def loops(*names: str) -> tuple[World, list[SimLoop]]:
    world = World(1)
    return world, [world.new_loop(name, name) for name in names]


def test_time_jumps_to_what_is_due_and_order_is_that_of_time_then_of_asking() -> None:
    world, (one, two) = loops("one", "two")
    seen: list[tuple[str, float]] = []
    two.call_later(5, lambda: seen.append(("late", world.scheduler.now)))
    one.call_later(2, lambda: seen.append(("first", world.scheduler.now)))
    two.call_later(2, lambda: seen.append(("second", world.scheduler.now)))
    one.call_soon(lambda: seen.append(("now", world.scheduler.now)))
    assert not world.scheduler.run(lambda: False, deadline=10)
    assert seen == [("now", 0), ("first", 2), ("second", 2), ("late", 5)]
    assert world.scheduler.now == 10


def test_a_callback_runs_on_its_own_loop() -> None:
    world, (one, two) = loops("one", "two")
    seen: list[object] = []
    for loop in (one, two):
        loop.call_soon(lambda: seen.append(asyncio.get_running_loop()))
    world.scheduler.run(lambda: False, deadline=1)
    assert seen == [one, two]


def test_a_paused_loop_does_everything_late_and_in_order() -> None:
    world, (loop, other) = loops("one", "two")
    seen: list[tuple[str, float]] = []
    loop.call_later(1, lambda: seen.append(("a", world.scheduler.now)))
    loop.call_later(2, lambda: seen.append(("b", world.scheduler.now)))
    loop.pause()
    other.call_later(5, loop.resume)
    world.scheduler.run(lambda: False, deadline=9)
    assert seen == [("a", 5), ("b", 5)]


def test_a_killed_loop_does_nothing_any_more_not_even_in_finally() -> None:
    world, (loop, other) = loops("one", "two")
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3)
            seen.append("slept")
        finally:
            asyncio.get_running_loop().call_soon(seen.append, "after")

    loop.create_task(work())
    loop.call_later(4, seen.append, "timer")
    other.call_later(1, loop.kill)
    world.scheduler.run(lambda: False, deadline=9)
    assert seen == []


def test_a_fast_clock_comes_to_its_deadlines_early() -> None:
    world = World(1)
    loop = world.new_loop("fast", "fast", rate=2.0, ahead_s=100.0)
    seen: list[tuple[float, float]] = []
    loop.call_later(4, lambda: seen.append((loop.time(), world.scheduler.now)))
    world.scheduler.run(lambda: False, deadline=9)
    assert seen == [(104.0, 2.0)]


def test_whoever_waits_by_yielding_lets_time_pass() -> None:
    world, (loop, _) = loops("one", "two")
    done: list[float] = []

    async def impatient() -> None:
        until = loop.time() + 10 * MOMENT_S
        while loop.time() < until:
            await asyncio.sleep(0)
        done.append(world.scheduler.now)

    loop.create_task(impatient())
    assert world.scheduler.run(lambda: bool(done), deadline=1)


def test_what_nobody_caught_is_a_violation() -> None:
    world, (loop, _) = loops("one", "two")

    def wrong() -> None:
        raise ValueError("no")

    loop.call_soon(wrong)
    world.scheduler.run(lambda: False, deadline=1)
    assert [violation for violation in world.story.violations if "ValueError: no" in violation]


def test_timers_that_were_cancelled_are_swept_out() -> None:
    world, (loop, _) = loops("one", "two")
    for _ in range(5_000):
        loop.call_later(1_000, list).cancel()
    assert len(world.scheduler._heap) < 3_000
