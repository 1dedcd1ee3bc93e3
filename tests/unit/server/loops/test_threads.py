"""Threads that make calls for a loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from penstock.server.loops.threads import CallThreads
from tests.unit.server.served import on_loop


@on_loop
async def test_calls_run_side_by_side_up_to_the_limit_and_wait_for_a_thread_beyond_it() -> None:
    threads, both_there = CallThreads(2), threading.Barrier(2)
    names = await asyncio.gather(*(threads.call(_meet, both_there) for _ in range(4)))
    assert len(set(names)) == 2
    threads.close()


def _meet(both_there: threading.Barrier) -> str:
    both_there.wait(10)
    return threading.current_thread().name


@on_loop
async def test_what_a_call_raises_reaches_who_waits() -> None:
    threads = CallThreads(1)
    with pytest.raises(ValueError, match="invalid literal"):
        await threads.call(int, "no number")
    assert await threads.call(int, "7") == 7
    threads.close()


@on_loop
async def test_a_call_that_nobody_waits_for_any_more_does_not_begin() -> None:
    threads, goes_on, done = CallThreads(1), threading.Event(), []
    first = threads.call(goes_on.wait, 10)
    second = threads.call(done.append, "second")
    third = threads.call(done.append, "third")
    second.cancel()
    goes_on.set()
    await asyncio.gather(first, third)
    assert done == ["third"]
    threads.close()


@on_loop
async def test_closing_waits_for_what_was_asked_and_takes_nothing_more() -> None:
    threads, done = CallThreads(1), []
    threads.call(done.append, 1)
    threads.call(done.append, 2)
    threads.close()
    assert done == [1, 2]
    with pytest.raises(RuntimeError, match="have ended"):
        threads.call(done.append, 3)
