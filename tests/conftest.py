"""What holds for the whole suite: patience, what is for the soak alone, and what must not be torn apart."""

from __future__ import annotations

from typing import Any

import pytest

from tests import hanging, properties
from tests.faults.counts import SOAKING
from tests.spreading import Spread, lengths, turn

properties.load_profile()


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread | None:
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return Spread(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not SOAKING:
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: turn(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    return hanging.set_timer(item, settings)


def pytest_runtest_setup(item: pytest.Item) -> None:
    properties.assert_there_is_time()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What a property was refuted by, as decorators to paste: an example that was found once is kept for good."""
    if config.getoption("dist", "no") == "loadgroup":
        terminalreporter.section("how it was shared out")
        every = [report for each in terminalreporter.stats.values() for report in each]
        terminalreporter.line("\n".join(lengths([each for each in every if isinstance(each, pytest.TestReport)])))
    failed = terminalreporter.getreports("failed")
    pasted = [words for report in failed for words in properties.to_paste(report.nodeid, report.longreprtext)]
    if pasted:
        terminalreporter.section("examples to keep: paste each above its test")
        terminalreporter.line("\n".join(pasted))
