"""What holds for the whole suite: patience, what is for the soak alone, and what must not be torn apart.

Two processes share the tests. The tests of one file stay together, because they share a broker; what needs a Spark
session stays together, because that is started once and its JVM, threads and heap stay until the end; what makes
network namespaces stays together, because their names are the machine's. Spark's part is the longest: it begins when a
third of the others is done, so that its process ends with it and the other one has enough to do meanwhile.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import properties
from tests.faults.counts import SOAKING
from tests.patience import within

properties.load_profile()

HERE = Path(__file__).parent
ON_SPARK = (HERE / "faults" / "spark", HERE / "spark")
ON_HOSTS = (HERE / "faults" / "cluster",)
BEFORE_SPARK = (HERE / "cli", HERE / "clients", HERE / "demo")


def _together(item: pytest.Item) -> str:
    for name, folders in (("spark", ON_SPARK), ("hosts", ON_HOSTS)):
        if any(item.path.is_relative_to(folder) for folder in folders):
            return name
    return str(item.path.relative_to(HERE))


def _turn(item: pytest.Item) -> int:
    for turn, folders in enumerate((BEFORE_SPARK, ON_SPARK)):
        if any(item.path.is_relative_to(folder) for folder in folders):
            return turn
    return 2


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not SOAKING:
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=_turn)
    usual_s = float(config.getini("timeout"))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_together(item)))
        given = item.get_closest_marker("timeout")
        hanging_s = properties.stretched(within(float(given.args[0]) if given else usual_s))
        item.add_marker(pytest.mark.timeout(hanging_s), append=False)  # in front of the test's own


def pytest_runtest_setup(item: pytest.Item) -> None:
    properties.assert_there_is_time()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What a property was refuted by, as decorators to paste: an example that was found once is kept for good."""
    failed = terminalreporter.getreports("failed")
    pasted = [words for report in failed for words in properties.to_paste(report.nodeid, report.longreprtext)]
    if pasted:
        terminalreporter.section("examples to keep: paste each above its test")
        terminalreporter.line("\n".join(pasted))
