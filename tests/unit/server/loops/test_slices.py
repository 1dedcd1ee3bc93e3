"""Work that is cut into slices: others get the loop when one is over, and nothing is done twice or left out."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

from penstock.server.loops.slices import SLICE_MS, LoopTime, Slices, finished_in_slices, in_slices, in_turns
from tests.unit.server.served import on_loop


class _Clock:
    def __init__(self) -> None:
        self.at_ms = 100.0

    def monotonic_ms(self) -> float:
        return self.at_ms


class _Neighbour:
    """Counts the turns of the loop that others get."""

    def __init__(self) -> None:
        self.turns = 0
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.turns += 1

    def leave(self) -> int:
        self._task.cancel()
        return self.turns


@on_loop
async def test_a_slice_is_over_when_its_time_is_and_the_next_begins_with_the_breath() -> None:
    clock = _Clock()
    slices = Slices(clock)
    clock.at_ms += SLICE_MS - 0.1
    assert not slices.over
    clock.at_ms += 0.1
    assert slices.over
    clock.at_ms += 1_000
    await slices.breathe()
    assert not slices.over


@on_loop
async def test_things_are_visited_in_order_and_the_loop_is_let_go_after_every_slice() -> None:
    clock, visited, neighbour = _Clock(), list[int](), _Neighbour()
    things = list(range(10))

    def visit(thing: int) -> None:
        visited.append(thing)
        things.append(100)  # what comes meanwhile is not visited
        clock.at_ms += SLICE_MS / 2

    await in_slices(clock, things, visit)
    assert visited == list(range(10))
    assert 4 <= neighbour.leave() <= 5


@on_loop
async def test_work_that_takes_no_time_is_done_in_one_slice() -> None:
    clock, neighbour = _Clock(), _Neighbour()
    await in_slices(clock, range(1_000), lambda _: None)
    assert neighbour.leave() == 0


@on_loop
async def test_a_generator_is_run_to_its_end_in_slices_of_its_own_length() -> None:
    clock, neighbour = _Clock(), _Neighbour()

    def work() -> Generator[None, None, str]:
        for _ in range(6):
            clock.at_ms += 1.0
            yield
        return "done"

    assert await finished_in_slices(clock, work(), slice_ms=2.0) == "done"
    assert 2 <= neighbour.leave() <= 3


@on_loop
async def test_steps_are_counted_where_there_is_no_clock() -> None:
    neighbour, made = _Neighbour(), list[int]()
    result = await in_turns((made.append(number) for number in range(10)), 4, made)
    assert result == list(range(10))
    assert 1 <= neighbour.leave() <= 2


@on_loop
async def test_a_loop_is_a_clock_too() -> None:
    loop = asyncio.get_running_loop()
    assert loop.time() <= LoopTime(loop).monotonic_ms() / 1_000 <= loop.time()
