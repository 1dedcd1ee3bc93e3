"""Rounds of group commit: one sync for all who wait, and a crowd that comes back shares the next one."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.model.errors import StorageFailed
from penstock.server.partitions.upkeep.flushing import ROUNDS_WITHOUT_GATHERING, FlushDriver
from penstock.storage.flushing import SyncTogether
from tests.patience import until


class Clock:
    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> float:
        return 0.0


class Disk:
    """Syncs when the test says so."""

    def __init__(self) -> None:
        self.under_way: list[tuple[asyncio.Future[Any], int]] = []
        self.rounds: list[int] = []

    def call(self, work: SyncTogether) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.under_way.append((future, len(work.items)))
        return future

    def end_round(self, failures: dict[int, OSError] | None = None) -> None:
        future, items = self.under_way.pop(0)
        self.rounds.append(items)
        future.set_result(failures or {})


class Sound:
    def sync(self) -> None: ...


class Log:
    directory, home = "/nowhere/topic-0", "/nowhere"
    written = 1

    def files_to_sync(self) -> list[Any]:
        return [Sound()]


class Hosted:
    """A partition with a producer that sends again as soon as it is answered, if it `returns`."""

    syncs_held = False

    def __init__(self, number: int, driver: list[Any], *, returns: bool) -> None:
        self.name, self.log = f"topic-{number}", Log()
        self._driver, self._returns = driver, returns
        self.answers = 0

    def synced(self, _to: int, _now: int) -> None:
        self.answers += 1
        if self._returns:
            asyncio.get_running_loop().call_soon(self._driver[0].want, self)


def driver_of(disk: Disk, failed: list[StorageFailed]) -> FlushDriver:
    clock: Any = Clock()
    offload: Any = disk
    return FlushDriver(clock, offload, failed.append)


def test_a_crowd_that_comes_back_shares_every_round() -> None:
    async def steps() -> None:
        disk, box = Disk(), list[Any]()
        driver = driver_of(disk, [])
        box.append(driver)
        crowd: list[Any] = [Hosted(number, box, returns=True) for number in range(10)]
        for hosted in crowd[:6]:
            driver.want(hosted)
        await until(lambda: bool(disk.under_way))
        for hosted in crowd[6:]:
            driver.want(hosted)  # while the first round runs
        for _ in range(4):
            await until(lambda: bool(disk.under_way))
            disk.end_round()
        assert disk.rounds == [6, 10, 10, 10]

    asyncio.run(steps())


def test_nobody_waits_for_a_crowd_that_does_not_come_back() -> None:
    async def steps() -> None:
        disk, box = Disk(), list[Any]()
        driver = driver_of(disk, [])
        box.append(driver)
        gone: list[Any] = [Hosted(number, box, returns=False) for number in range(6)]
        for hosted in gone:
            driver.want(hosted)
        await until(lambda: bool(disk.under_way))
        disk.end_round()
        await driver.drain()
        assert [hosted.answers for hosted in gone] == [1] * 6
        lane = next(iter(driver._lanes.values()))
        assert lane.hurried == ROUNDS_WITHOUT_GATHERING

    asyncio.run(steps())


def test_a_file_that_failed_harms_its_own_partition_only() -> None:
    async def steps() -> None:
        disk, box, failed = Disk(), list[Any](), list[StorageFailed]()
        driver = driver_of(disk, failed)
        box.append(driver)
        both: list[Any] = [Hosted(number, box, returns=False) for number in range(2)]
        for hosted in both:
            driver.want(hosted)
        await until(lambda: bool(disk.under_way))
        disk.end_round({1: OSError(5, "it is gone")})
        await driver.drain()
        assert [hosted.answers for hosted in both] == [1, 0]
        assert len(failed) == 1

    asyncio.run(steps())
