"""Deadlines on a busy machine, and examples as they are pasted."""

from __future__ import annotations

import pytest

from tests import patience
from tests.patience import Patience, TimedOut, wait_for, within
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


def test_what_never_happens_is_named() -> None:
    with pytest.raises(TimedOut, match="the moon"):
        wait_for("the moon", lambda: None, timeout_s=0.01, pause_s=0.001)


def test_a_refuted_property_is_printed_as_an_example_to_paste() -> None:
    (pasted,) = to_paste("tests/unit/test_x.py::test_sum", FAILURE)
    given: dict[str, object] = {}
    body = pasted.removeprefix("# tests/unit/test_x.py::test_sum\n@")
    eval(body, {"example": given.update})
    assert given == {"rows": [(100, False)], "name": ""}
