"""Deadlines on a busy machine, and examples as they are pasted."""

from __future__ import annotations

import asyncio
import threading

import pytest
import pytest_timeout

from tests import hanging, patience
from tests.patience import Patience, TimedOut, at_most, wait_for, within
from tests.properties import to_paste

FAILURE = """\
E       assert 100 < 100
E       Failing test case: test_sum(
E           # The test always failed when commented parts were varied together.
E           rows=[(
E                100,
E                False,  # or any other generated value
E            )],
E           name='',
E       )

tests/unit/test_x.py:5: AssertionError
"""


def test_a_deadline_that_is_said_beforehand_grows_with_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "factor", lambda: 2.5)
    assert (within(30), within(0.5)) == (75, 1.25)


def test_a_busy_second_is_part_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(patience.time, "monotonic", lambda: now)
    monkeypatch.setattr(patience, "factor", lambda: 10.0)
    deadline = Patience(2.0)
    now += 19.0
    assert not deadline.over()
    monkeypatch.setattr(patience, "factor", lambda: 1.0)
    now += 0.5
    assert deadline.over()


def test_the_deadline_of_a_coroutine_moves_away_while_the_machine_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def busy_at_first() -> float:
        looks.append(1000.0 if len(looks) < 2 else 1.0)
        return looks[-1]

    monkeypatch.setattr(patience, "factor", busy_at_first)

    async def hang() -> None:
        async with at_most(0.3):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(hang())
    assert looks == [1000.0, 1000.0, 1.0]


def test_a_coroutine_in_time_is_left_alone() -> None:
    async def quick() -> str:
        async with at_most(60):
            await asyncio.sleep(0)
        return "done"

    assert asyncio.run(quick()) == "done"


def test_a_test_that_hangs_is_ended_after_its_time_of_an_idle_machine(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """One alarm finds the machine busy, the next one does not."""
    factors = iter((1000.0, 1.0))
    monkeypatch.setattr(patience, "factor", lambda: next(factors))
    settings = pytest_timeout.Settings(0.3, "signal", False, True)
    item: pytest.Item = request.node
    own = item.cancel_timeout  # type: ignore[attr-defined]  # of the test that runs this
    assert hanging.set_timer(item, settings)
    try:
        with pytest.raises(pytest.fail.Exception, match=r"0\.3s"):
            threading.Event().wait()
    finally:
        own()
    assert not list(factors)


def test_what_never_happens_is_named() -> None:
    with pytest.raises(TimedOut, match="the moon"):
        wait_for("the moon", lambda: None, timeout_s=0.01, pause_s=0.001)


def test_a_refuted_property_is_printed_as_an_example_to_paste() -> None:
    (pasted,) = to_paste("tests/unit/test_x.py::test_sum", FAILURE)
    given: dict[str, object] = {}
    body = pasted.removeprefix("# tests/unit/test_x.py::test_sum\n@")
    eval(body, {"example": given.update})
    assert given == {"rows": [(100, False)], "name": ""}
