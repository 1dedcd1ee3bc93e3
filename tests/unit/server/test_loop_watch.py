"""Who held the loop. In a process of its own, because the alarm belongs to the test runner here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from penstock.server.loop_watch import LoopWatch
from tests.patience import until, within
from tests.unit.server.served import on_loop

GUILTY = """
import asyncio, logging, sys, time, uvloop
from penstock.server.loop_watch import LoopWatch
logging.basicConfig(stream=sys.stdout, format="%(message)s")

def the_guilty_callback():
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        pass

async def main():
    loop = asyncio.get_running_loop()
    watch = LoopWatch(loop)
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
