"""Reads wait for their turn, and long work lets others have theirs."""

from __future__ import annotations

import asyncio

import pytest

from penstock.console.failures import Declined
from penstock.console.messages import turns
from penstock.console.messages.turns import (
    READS_MAX,
    READS_OF_ONE_MAX,
    SLICE_S,
    WAITING_OF_ONE_MAX,
    ReadingTurns,
    Slices,
)


class Reader:
    """Reads until it is told to stop."""

    def __init__(self, places: ReadingTurns, person: str) -> None:
        self.reading, self._stop = False, asyncio.Event()
        self.task = asyncio.create_task(self._read(places, person))

    async def _read(self, places: ReadingTurns, person: str) -> None:
        async with places.taken(person):
            self.reading = True
            await self._stop.wait()
        self.reading = False

    async def stop(self) -> None:
        self._stop.set()
        await self.task
        await settled()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_two_of_a_person_are_read_and_some_wait() -> None:
    async def main() -> None:
        places = ReadingTurns()
        mine = [Reader(places, "anna") for _ in range(READS_OF_ONE_MAX + WAITING_OF_ONE_MAX + 1)]
        other = Reader(places, "ben")
        await settled()
        assert [each.reading for each in mine] == [True] * 2 + [False] * (WAITING_OF_ONE_MAX + 1)
        assert other.reading, "somebody else need not wait for them"
        with pytest.raises(Declined, match="are being read for you"):
            await mine[-1].task
        mine[2].task.cancel()
        await settled()
        await mine[0].stop()
        assert [each.reading for each in mine[:5]] == [False, True, False, True, False], "the next, but who went"
        for each in (mine[1], *mine[3:-1], other):
            await each.stop()
        assert [places._under_way.total(), len(places._waiting)] == [0, 0]

    asyncio.run(main())


def test_sixteen_are_read_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAIT_S", 0.01)

    async def main() -> None:
        places = ReadingTurns()
        people = [Reader(places, f"person {number}") for number in range(READS_MAX + 1)]
        await settled()
        assert [each.reading for each in people] == [True] * READS_MAX + [False]
        with pytest.raises(Declined):
            await people[-1].task
        for each in people[:-1]:
            await each.stop()
        assert places._under_way.total() == 0

    asyncio.run(main())


def test_a_loop_is_let_go_by_time_and_not_by_count() -> None:
    async def main() -> None:
        now = 0.0
        slices = Slices(lambda: now)
        let_go = []
        for took in (SLICE_S * 0.4, SLICE_S * 0.4, SLICE_S * 0.4, SLICE_S * 20, 0, 0):
            now += took
            let_go.append(await slices.step())
        assert let_go == [False, False, True, True, False, False]

    asyncio.run(main())
