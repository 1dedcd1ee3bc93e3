"""What folders took is summed over every part of every test and over the runs of one `make test`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import took
from tests.took import Took, by_folder, lines, with_earlier_runs


def report(test: str, when: Any, clock_s: float, processors_s: float) -> pytest.TestReport:
    made = pytest.TestReport(test, ("", 0, ""), {}, "passed", None, when, duration=clock_s)
    made.processors_s = processors_s
    return made


def test_a_folder_took_what_every_part_of_its_tests_took() -> None:
    reports = [
        report("tests/cli/test_dev.py::test_a[x/y::z]", "setup", 2.0, 1.0),
        report("tests/cli/test_dev.py::test_a[x/y::z]", "call", 3.0, 0.5),
        report("tests/cli/deeper/test_x.py::test_b", "call", 1.0, 0.25),
        report("tests/docs/test_pages.py::test_c", "call", 8.0, 4.0),
    ]
    assert by_folder(reports) == {"tests/cli": Took(6.0, 1.75, 2), "tests/docs": Took(8.0, 4.0, 1)}


def test_the_second_run_tells_of_both(tmp_path: Path) -> None:
    file = tmp_path / "took"
    first = with_earlier_runs({"tests/unit": Took(4.0, 3.0, 7)}, file)
    both = with_earlier_runs({"tests/cli": Took(20.0, 5.0, 2), "tests/unit": Took(1.0, 1.0, 1)}, file)
    assert first == {"tests/unit": Took(4.0, 3.0, 7)}
    assert both == {"tests/cli": Took(20.0, 5.0, 2), "tests/unit": Took(5.0, 4.0, 8)}
    assert [" ".join(line.split()) for line in lines(both)] == [
        "clock processors tests",
        "20 s 5 s 2 tests/cli",
        "5 s 4 s 8 tests/unit",
        "25 s 9 s 10 all",
    ]


def test_what_a_process_worked_is_counted_once() -> None:
    meter = took.Meter()
    sum(range(5_000_000))
    worked_s = meter.since_last_s()
    assert 0 <= meter.since_last_s() < worked_s
