"""Coroutines of commands, and interrupts at the worst moment."""

from __future__ import annotations

import gc
import warnings

import pytest

from penstock.cli.on_a_loop import run


async def work() -> str:
    return "done"


def test_a_coroutine_gives_what_it_returns() -> None:
    assert run(work()) == "done"


def test_an_interrupt_before_the_loop_stands_leaves_no_coroutine_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("asyncio.events.new_event_loop", interrupted)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            run(work())
        gc.collect()
    assert [str(each.message) for each in told] == []
