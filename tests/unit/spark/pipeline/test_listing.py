"""One list of what runs here and elsewhere."""

from __future__ import annotations

from dataclasses import replace

from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import SinkProgress
from penstock.spark.pipeline.listing import Listed, merged

HERE = Listed("orders", home.RUNNING, True, "me", 1, 1, "local", "/p.toml", "b:1", 0, "", ())
THERE = replace(HERE, here=False, host="you", pid=2)


def test_what_runs_here_is_known_best_here() -> None:
    assert merged({"orders": HERE}, {"orders": replace(HERE, pid=9)}) == [HERE]


def test_what_ended_here_may_run_elsewhere_by_now() -> None:
    ended = replace(HERE, state=home.STOPPED)
    assert merged({"orders": ended}, {"orders": THERE}) == [THERE]
    assert merged({"orders": ended}, {"orders": replace(THERE, state=home.STOPPED)}) == [ended]


def test_all_names_in_order() -> None:
    clicks = replace(THERE, name="clicks")
    assert [each.name for each in merged({"orders": HERE}, {"clicks": clicks})] == ["clicks", "orders"]


def test_a_failed_sink_is_not_healthy() -> None:
    sink = SinkProgress("lake", "table", "t", "failed", "q")
    assert HERE.healthy
    assert not replace(HERE, sinks=(sink,)).healthy
    assert not replace(HERE, state=home.DIED).healthy
    assert not replace(HERE, state="silent").healthy
