"""What holds for the whole suite: patience, what is for the soak alone, what must not be torn apart, what took long."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from typing import Any

import pytest

from tests import hanging, properties, took
from tests.faults import counts
from tests.spreading import Spread, lengths, turn

properties.load_profile()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell makes what it starts in the background deaf to it, and so would be every child that is to be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A console beside every node that tests start would take more than the node; those that are about it ask for it.
os.environ.setdefault("PENSTOCK_NO_CONSOLE", "1")

METER = took.Meter()


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread | None:
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return Spread(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not counts.SOAKING:
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: turn(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    return hanging.set_timer(item, settings)


def pytest_runtest_setup(item: pytest.Item) -> None:
    properties.assert_there_is_time()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.processors_s = METER.since_last_s()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """How long what took; what a property was refuted by, as decorators to paste, so that it is kept for good."""
    every = [report for each in terminalreporter.stats.values() for report in each]
    reports = [each for each in every if isinstance(each, pytest.TestReport)]
    if config.getoption("dist", "no") == "loadgroup":
        terminalreporter.section("how it was shared out")
        terminalreporter.line("\n".join(lengths(reports)))
    if len(set(map(took.folder_of, (each.nodeid for each in reports)))) > 1:
        terminalreporter.section("what each folder took")
        terminalreporter.line("\n".join(took.told(reports)))
    if counts.SOAKING and (held := counts.told()):
        terminalreporter.section("rounds that held")
        terminalreporter.line("\n".join(held))
    failed = terminalreporter.getreports("failed")
    pasted = [words for report in failed for words in properties.to_paste(report.nodeid, report.longreprtext)]
    if pasted:
        terminalreporter.section("examples to keep: paste each above its test")
        terminalreporter.line("\n".join(pasted))
