"""How long each folder of tests took, so that the minutes that `make test` may take can be watched.

Two figures for each folder: seconds of the clock, summed over the processes of the suite, and seconds of processors of
the tests and of every process that they waited for. Where the first is far above the second, tests wait. What lives
until the end of a run (Spark's JVM, templates of commands) is in neither; fixtures count for the test that is first to
need them.

`make test` is more than one run. Each leaves its lines in the file that PENSTOCK_TOOK names, and the last tells of all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

TELLING = "PENSTOCK_TOOK"


class Took(NamedTuple):
    """What a folder took, or a test, or a part of one."""

    clock_s: float = 0.0
    processors_s: float = 0.0
    tests: int = 0

    def __add__(self, other: Took) -> Took:  # type: ignore[override]  # a sum, not a longer tuple
        return Took(*(a + b for a, b in zip(self, other, strict=True)))


class Meter:
    """Of one process: what its processors did between two parts of tests belongs to the second."""

    def __init__(self) -> None:
        self._read_s = self._now_s()

    @staticmethod
    def _now_s() -> float:
        return sum(os.times()[:4])

    def since_last_s(self) -> float:
        before, self._read_s = self._read_s, self._now_s()
        return self._read_s - before


def folder_of(test: str) -> str:
    return "/".join(test.partition("::")[0].split("/")[:2])


def by_folder(reports: Sequence[pytest.TestReport]) -> dict[str, Took]:
    found: dict[str, Took] = {}
    for report in reports:
        took = Took(report.duration, getattr(report, "processors_s", 0.0), report.when == "call")
        folder = folder_of(report.nodeid)
        found[folder] = found.get(folder, Took()) + took
    return found


def with_earlier_runs(found: dict[str, Took], file: Path | None) -> dict[str, Took]:
    """Adds what is in the file, and leaves all of it there."""
    if file is None:
        return found
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in lines:
        folder, clock_s, processors_s, tests = line.split("\t")
        found[folder] = found.get(folder, Took()) + Took(float(clock_s), float(processors_s), int(tests))
    file.write_text("".join(f"{folder}\t" + "\t".join(map(str, took)) + "\n" for folder, took in found.items()))
    return found


def lines(found: dict[str, Took]) -> Iterator[str]:
    """One for each folder, what took longest first, and one for all."""
    yield f"{'clock':>8} {'processors':>12} {'tests':>7}"
    for folder, took in sorted(found.items(), key=lambda each: each[1].clock_s, reverse=True):
        yield _line(folder, took)
    yield _line("all", sum(found.values(), Took()))


def _line(name: str, took: Took) -> str:
    return f"{took.clock_s:6.0f} s {took.processors_s:10.0f} s {took.tests:7}  {name}"


def told(reports: Sequence[pytest.TestReport]) -> Iterator[str]:
    file = os.environ.get(TELLING)
    return lines(with_earlier_runs(by_folder(reports), Path(file) if file else None))
