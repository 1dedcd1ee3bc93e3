"""Work in slices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from penstock.model.ids import Millis
from penstock.server.coordinating.chores import Chores

LOG = logging.getLogger("penstock.tests")


class SlowClock:
    """A millisecond passes with every look."""

    def __init__(self) -> None:
        self.at_ms = 0.0

    def now_ms(self) -> Millis:
        return Millis(int(self.at_ms))

    def monotonic_ms(self) -> float:
        self.at_ms += 1.0
        return self.at_ms


def counted(done: list[str], name: str, steps: int) -> Iterator[None]:
    for _ in range(steps):
        done.append(name)
        yield


def test_others_get_their_turn_while_work_goes_on() -> None:
    async def main() -> None:
        chores, done = Chores(SlowClock(), LOG), list[str]()
        chores.add(counted(done, "a", 12))
        chores.add(counted(done, "b", 1))
        turns = 0
        while len(chores):
            await asyncio.sleep(0)
            turns += 1
        assert done == ["a"] * 12 + ["b"]
        assert turns > 2

    asyncio.run(main())


def test_work_that_fails_does_not_keep_the_rest_from_being_done(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> Iterator[None]:
        yield
        raise ValueError("no")

    async def main() -> None:
        chores, done = Chores(SlowClock(), LOG), list[str]()
        chores.add(fails())
        chores.add(counted(done, "b", 1))
        while len(chores):
            await asyncio.sleep(0)
        assert done == ["b"]

    asyncio.run(main())
    assert "failed" in caplog.text


def test_what_is_cleared_is_not_done() -> None:
    async def main() -> None:
        chores, done = Chores(SlowClock(), LOG), list[str]()
        chores.add(counted(done, "a", 1))
        chores.clear()
        await asyncio.sleep(0)
        assert done == []

    asyncio.run(main())
