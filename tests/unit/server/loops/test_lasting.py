"""The collector is relieved of what was loaded: in a node's own process, and only when it is much."""

from __future__ import annotations

import gc

import pytest

from penstock.server.loops.lasting import RECORDS_MAX, Lasting


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("frozen"))
    return calls


def test_many_small_loads_are_set_aside_together(frozen: list[str]) -> None:
    lasting = Lasting()
    lasting.begin()
    for _ in range(49):
        lasting.loaded(RECORDS_MAX // 10)
    assert len(frozen) == 4


def test_little_is_left_to_the_collector(frozen: list[str]) -> None:
    lasting = Lasting()
    lasting.begin()
    lasting.loaded(RECORDS_MAX - 1)
    assert not frozen


def test_in_a_process_of_somebody_else_nothing_is_set_aside(frozen: list[str]) -> None:
    Lasting().loaded(100 * RECORDS_MAX)
    assert not frozen
