"""Memory that is bounded, and shared so that nobody starves."""

from __future__ import annotations

import asyncio
import random

import pytest

from penstock.agent.outlet.memory import MemoryGate, Share
from tests.patience import within

LIMIT = 1_000


def test_an_input_alone_may_have_all_of_it() -> None:
    gate = MemoryGate(LIMIT)
    share = gate.share()
    assert share.try_take(600)
    assert share.try_take(400)
    assert not share.try_take(1)
    assert (share.pressed, gate.used_bytes) == (True, LIMIT)


def test_what_is_reserved_for_an_input_nobody_else_gets() -> None:
    gate = MemoryGate(LIMIT)
    greedy, modest = gate.share(), gate.share()
    while greedy.try_take(10):
        pass
    assert greedy.used_bytes == 750
    assert modest.try_take(250)
    assert not modest.try_take(1)


async def test_those_who_wait_are_let_in_by_turns() -> None:
    gate = MemoryGate(LIMIT)
    first, second = gate.share(), gate.share()
    assert first.try_take(750)
    assert second.try_take(250)
    order: list[str] = []

    async def take(share: Share, name: str) -> None:
        await share.take(100)
        order.append(name)

    waiting = [asyncio.ensure_future(take(first, "first")) for _ in range(3)]
    await asyncio.sleep(0)
    waiting += [asyncio.ensure_future(take(second, "second")) for _ in range(3)]
    await asyncio.sleep(0)
    for _ in range(6):
        first.give_back(100)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert order[:4] == ["first", "second", "first", "second"]


async def test_nobody_who_comes_later_takes_what_a_large_one_waits_for() -> None:
    gate = MemoryGate(LIMIT)
    first, second = gate.share(), gate.share()
    assert first.try_take(700)
    large = asyncio.ensure_future(second.take(600))
    await asyncio.sleep(0)
    assert not first.try_take(10)
    first.give_back(600)
    await large
    assert (first.used_bytes, second.used_bytes) == (100, 600)


async def test_a_portion_larger_than_everything_passes_alone() -> None:
    gate = MemoryGate(LIMIT)
    first, second = gate.share(), gate.share()
    assert first.try_take(400)
    huge = asyncio.ensure_future(second.take(5_000))
    await asyncio.sleep(0)
    assert not huge.done()
    first.give_back(400)
    await huge
    assert first.try_take(250), "what is reserved stays reserved"
    assert not first.try_take(1)
    second.give_back(5_000)
    assert first.try_take(500)


@pytest.mark.parametrize("granted", [True, False])
async def test_who_is_cancelled_while_waiting_holds_nothing(granted: bool) -> None:
    gate = MemoryGate(LIMIT)
    share = gate.share()
    assert share.try_take(LIMIT)
    waiting = asyncio.ensure_future(share.take(100))
    await asyncio.sleep(0)
    if granted:
        share.give_back(LIMIT)
        waiting.cancel()
    else:
        waiting.cancel()
        await asyncio.wait([waiting])
        share.give_back(LIMIT)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert gate.used_bytes == 0
    assert share.try_take(LIMIT)


@pytest.mark.parametrize("seed", range(20))
async def test_the_bound_holds_whatever_inputs_do(seed: int) -> None:
    chance = random.Random(seed)
    gate = MemoryGate(LIMIT)
    shares = [gate.share() for _ in range(chance.randrange(1, 5))]
    taken = [0] * len(shares)

    async def live(index: int) -> None:
        for _ in range(60):
            size = chance.randrange(1, 400)
            await shares[index].take(size)
            taken[index] += 1
            assert gate.used_bytes <= LIMIT
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            shares[index].give_back(size)

    async with asyncio.timeout(within(10)):
        await asyncio.gather(*(live(index) for index in range(len(shares)) for _ in range(3)))
    assert taken == [180] * len(shares)
    assert gate.used_bytes == 0


def test_another_size_and_another_number_of_inputs_divide_it_anew() -> None:
    gate = MemoryGate(LIMIT)
    first = gate.share()
    assert first.try_take(900)
    second = gate.share()
    assert second.try_take(250)
    second.give_back(250)
    gate.resize(4_000)
    assert first.try_take(2_000)
    first.give_back(2_900)
    gate.leave(second)
    assert first.try_take(4_000)
