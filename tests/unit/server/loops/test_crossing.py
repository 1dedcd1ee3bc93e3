"""What passes between the two loops of a node arrives there, in order, and comes back with what became of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from penstock.model.errors import BROKER_NOT_AVAILABLE, Refused
from penstock.model.ports import Ports
from penstock.server.loops.control_thread import NAME, ControlThread
from penstock.server.loops.crossing import Sides, one_loop
from tests.patience import until


def crossed(steps: Any) -> None:
    """Runs the steps with a loop of their own for the other side."""

    async def main() -> None:
        nothing: Any = None
        quarters = ControlThread(Random(1), lambda _loop: Ports(nothing, nothing, nothing, nothing))
        try:
            await steps(quarters)
        finally:
            quarters.close()

    asyncio.run(main())


def test_what_is_called_runs_there_and_its_outcome_comes_back() -> None:
    async def steps(quarters: ControlThread) -> None:
        control = quarters.sides.control

        async def slow(text: str, *, times: int) -> str:
            await asyncio.sleep(0)
            return f"{text * times} in {threading.current_thread().name}"

        assert await control.call(slow, "ab", times=2) == f"abab in {NAME}"
        assert await control.ask(threading.current_thread) is quarters._thread
        with pytest.raises(ZeroDivisionError):
            await control.ask(divmod, 1, 0)

    crossed(steps)


def test_what_was_told_before_an_answer_arrives_before_it() -> None:
    async def steps(quarters: ControlThread) -> None:
        sides, heard = quarters.sides, list[int]()

        async def speak() -> str:
            for number in range(100):
                sides.data.tell(heard.append, number)
            return "spoken"

        assert await sides.control.call(speak) == "spoken"
        assert heard == list(range(100))

    crossed(steps)


def test_who_stops_waiting_stops_the_work() -> None:
    async def steps(quarters: ControlThread) -> None:
        stopped = threading.Event()
        begun = threading.Event()

        async def forever() -> None:
            begun.set()
            try:
                await asyncio.sleep(3_600)
            finally:
                stopped.set()

        waiting = asyncio.ensure_future(quarters.sides.control.call(forever))
        await until(begun.is_set)
        waiting.cancel()
        await until(stopped.is_set)

    crossed(steps)


def test_a_loop_that_has_ended_refuses_and_who_waits_for_it_is_told() -> None:
    async def steps(quarters: ControlThread) -> None:
        control = quarters.sides.control
        waiting = asyncio.ensure_future(control.call(asyncio.sleep, 3_600))
        await control.ask(int)
        quarters.close()
        for asking in (waiting, control.ask(int)):
            with pytest.raises(Refused) as refused:
                await asking
            assert refused.value.error is BROKER_NOT_AVAILABLE
        control.tell(pytest.fail, "nobody is there")

    crossed(steps)


def test_a_node_of_one_loop_crosses_at_once() -> None:
    heard: list[str] = []
    sides: Sides = one_loop()
    sides.data.tell(heard.append, "told")
    assert heard == ["told"]

    async def ask() -> tuple[int, str]:
        return await sides.control.ask(len, "four"), await sides.control.call(echoed, "x")

    def echoed(text: str) -> Coroutine[Any, Any, str]:
        async def later() -> str:
            return text

        return later()

    assert asyncio.run(ask()) == (4, "x")
