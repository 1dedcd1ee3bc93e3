"""Who held the loop. In a process of its own, because the alarm belongs to the test runner here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from penstock.server.loops.loop_watch import LoopWatch
from penstock.server.loops.processor_time import Account, ProcessorTime
from tests.patience import until, within
from tests.unit.server.served import on_loop

GUILTY = """
import asyncio, logging, sys, time, uvloop
from penstock.server.loops.loop_watch import LoopWatch
from penstock.server.loops.processor_time import ProcessorTime
logging.basicConfig(stream=sys.stdout, format="%(message)s")

def the_guilty_callback():
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        pass

async def main():
    loop = asyncio.get_running_loop()
    watch = LoopWatch(loop, ProcessorTime())
    watch.start()
    while not watch.lag.count:
        await asyncio.sleep(0.01)
    loop.call_soon(the_guilty_callback)
    while not watch.stalls:
        await asyncio.sleep(0.01)
    watch.stop()
    print("stalls", watch.stalls)

uvloop.run(main())
"""


def test_a_callback_that_holds_the_loop_is_found_on_the_stack() -> None:
    ran = subprocess.run([sys.executable, "-c", GUILTY], capture_output=True, text=True, timeout=within(30), check=True)
    assert "the loop was held for about" in ran.stdout
    assert "the_guilty_callback" in ran.stdout
    assert "stalls 1" in ran.stdout


@on_loop
async def test_without_the_alarm_a_stall_is_still_counted(caplog: pytest.LogCaptureFixture) -> None:
    watch = LoopWatch(asyncio.get_running_loop())
    watch._alarmed = False
    watch._wind()
    await until(lambda: watch.lag.count)
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        pass
    await until(lambda: watch.stalls)
    watch.stop()
    assert "the loop was held for about" in caplog.text
    assert watch.lag.max_ms > 100


class Machine:
    """A machine whose account the test keeps."""

    def __init__(self) -> None:
        self.so_far = Account(0, 0, 0)

    def account(self, *, now: bool = False) -> Account:
        return self.so_far


async def late_with(spent: Account) -> LoopWatch:
    """A watch of a loop that was late for 300 ms in which its thread spent its time so."""
    machine = Machine()
    watch = LoopWatch(asyncio.get_running_loop(), machine)
    machine.so_far = spent
    watch._late(300)
    return watch


@on_loop
async def test_a_loop_without_a_processor_was_held_by_nobody(caplog: pytest.LogCaptureFixture) -> None:
    for spent in (Account(5, 295, 0), Account(5, 100, 400)):
        caplog.clear()
        watch = await late_with(spent)
        assert (watch.stalls, watch.starved, watch.held_max_ms) == (0, 1, 5)
        assert "the loop got no processor for about" in caplog.text


@on_loop
async def test_a_callback_that_holds_the_loop_is_not_excused_by_a_busy_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = await late_with(Account(280, 60, 1_000))
    assert (watch.stalls, watch.starved, watch.held_max_ms) == (1, 0, 240)
    assert "the loop was held for about" in caplog.text


@on_loop
async def test_a_call_that_waits_holds_the_loop_too(caplog: pytest.LogCaptureFixture) -> None:
    watch = await late_with(Account(3, 2, 0))
    assert (watch.stalls, watch.starved) == (1, 0)


def test_the_account_of_a_thread_tells_running_from_sleeping() -> None:
    processor = ProcessorTime()
    before, began = processor.account(now=True), time.thread_time()
    while time.thread_time() < began + 0.05:
        pass
    spent = processor.account(now=True).since(before)
    processor.close()
    assert spent.ran_ms >= 50
    assert min(spent) >= 0
    assert processor.account(now=True)[1:] == (0, 0), "what is not told was not denied"
