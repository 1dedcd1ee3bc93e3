"""Deadlines after a stall."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

import pytest
import uvloop

from penstock.transport.deadline import LATE_MS, Deadline
from tests.patience import until
from tests.unit.transport.pairs import on_loop


class RealClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000


def deadline(callback: Callable[[], None]) -> Deadline:
    return Deadline(asyncio.get_running_loop(), RealClock(), callback)  # type: ignore[arg-type]


class Hearing(asyncio.Protocol):
    def __init__(self, heard: Callable[[], None]) -> None:
        self.heard = heard

    def data_received(self, data: bytes) -> None:
        self.heard()


@on_loop
async def test_it_fires_once_at_the_last_time_set() -> None:
    fired: list[float] = []
    clock = RealClock()
    timer = deadline(lambda: fired.append(clock.monotonic_ms()))
    begin = clock.monotonic_ms()
    timer.set(begin + 5)
    timer.set(begin + 30)
    await until(lambda: fired)
    assert len(fired) == 1
    assert fired[0] >= begin + 29


@on_loop
async def test_a_cancelled_one_stays_silent() -> None:
    fired: list[bool] = []
    timer, witness = deadline(lambda: fired.append(True)), deadline(lambda: fired.append(False))
    now = RealClock().monotonic_ms()
    timer.set(now + 1)
    witness.set(now + 10)
    timer.cancel()
    await until(lambda: fired)
    assert fired == [False]


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_after_a_stall_what_has_arrived_is_heard_first(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def stalled() -> list[str]:
        loop = asyncio.get_running_loop()
        order: list[str] = []
        leader, follower = socket.socketpair()
        troublemaker, trouble = socket.socketpair()
        timer = deadline(lambda: order.append("deadline"))

        def stall() -> None:
            timer.set(RealClock().monotonic_ms() + 5)
            leader.send(b"heartbeat")
            time.sleep(3 * LATE_MS / 1000)

        following, _ = await loop.create_connection(lambda: Hearing(lambda: order.append("heartbeat")), sock=follower)
        troubled, _ = await loop.create_connection(lambda: Hearing(stall), sock=trouble)
        troublemaker.send(b"x")
        await until(lambda: len(order) == 2)
        following.close()
        troubled.close()
        leader.close()
        troublemaker.close()
        await asyncio.sleep(0)
        return order

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(stalled()) == ["heartbeat", "deadline"]


@on_loop
async def test_whoever_is_called_does_not_find_the_clock_a_hair_too_early() -> None:
    class Rounding:
        """Its milliseconds fall short of the loop's by less than anybody would wait for."""

        at_ms = 999.99999999999

        def now_ms(self) -> int:
            return 0

        def monotonic_ms(self) -> float:
            return self.at_ms

    clock, seen = Rounding(), list[float]()
    timer = Deadline(asyncio.get_running_loop(), clock, lambda: seen.append(clock.at_ms))  # type: ignore[arg-type]
    timer.set(1_000.0)
    for _ in range(5):
        await asyncio.sleep(0)
    assert seen == []
    clock.at_ms = 1_000.0
    await until(lambda: seen)
    assert seen == [1_000.0]
