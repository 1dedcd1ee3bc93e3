"""What holds for the whole suite: patience, what is for the soak alone, and that what needs Spark comes last.

A Spark session stays in the process until the end: its JVM, its threads and its heap are then felt by nobody else, and
it is started once.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tests.faults.counts import SOAKING

# A machine that stalls is no counterexample.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

HERE = Path(__file__).parent
ON_SPARK = (HERE / "faults" / "spark", HERE / "spark")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not SOAKING:
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: any(item.path.is_relative_to(folder) for folder in ON_SPARK))
