"""Whoever is wrong waits longer each time, and nobody is shut out by it."""

from __future__ import annotations

import asyncio

import pytest

from penstock.console.failures import Declined
from penstock.console.people.tries import ADDRESS_WAITS_S, AT_ONCE_FROM_ONE_MAX, NAME_WAITS_S, REMEMBERED_S, Tries


class Time:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


async def tried(tries: Tries, address: str, name: str = "anna", code: str = "wrong_login") -> None:
    with pytest.raises(Declined):
        async with tries.turn(address, name):
            raise Declined(401, code, "no")


async def test_every_mistake_costs_twice_as_much_up_to_a_bound() -> None:
    time = Time()
    tries = Tries(lambda: time.now, time.sleep)
    for _ in range(9):
        await tried(tries, "here")
    assert time.slept == [1.0, 2.0, 4.0, ADDRESS_WAITS_S, ADDRESS_WAITS_S, ADDRESS_WAITS_S]
    time.now += REMEMBERED_S + 1
    time.slept.clear()
    await tried(tries, "here")
    assert time.slept == []


async def test_whose_name_others_guess_waits_a_moment() -> None:
    time = Time()
    tries = Tries(lambda: time.now, time.sleep)
    for number in range(20):
        await tried(tries, f"address {number}")
    time.slept.clear()
    async with tries.turn("at home", "anna"):
        assert time.slept == [NAME_WAITS_S]
    async with tries.turn("at home", "ben"):
        assert time.slept == [NAME_WAITS_S], "it is about her name and no other"


async def test_an_outage_is_nobodys_mistake() -> None:
    time = Time()
    tries = Tries(lambda: time.now, time.sleep)
    for _ in range(9):
        await tried(tries, "here", code="unreachable")
    assert time.slept == []


async def test_many_at_once_gain_nothing() -> None:
    time, going = Time(), asyncio.Event()
    tries = Tries(lambda: time.now, time.sleep)

    async def one() -> None:
        async with tries.turn("here"):
            await going.wait()

    under_way = [asyncio.create_task(one()) for _ in range(AT_ONCE_FROM_ONE_MAX)]
    await asyncio.sleep(0)
    assert max(time.slept) == ADDRESS_WAITS_S
    with pytest.raises(Declined, match="under way"):
        async with tries.turn("here"):
            raise AssertionError("there is no room for it")
    async with tries.turn("elsewhere"):
        going.set()
    await asyncio.gather(*under_way)
