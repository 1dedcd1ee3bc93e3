"""How often: a few times in `make test`, the full count in `make soak`, never longer than its minutes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

SOAKING = os.environ.get("PENSTOCK_SOAK") == "1"
MINUTES = float(os.environ.get("PENSTOCK_SOAK_MINUTES", "30"))


def time_s() -> float:
    """The clock of what goes by time. `make test` counts the seconds that a processor worked for this process, so that
    it tries as many seeds beside others as alone."""
    return time.monotonic() if SOAKING else time.process_time()


def rounds(fast: int, full: int) -> Iterator[int]:
    """0, 1, 2 … up to the count that applies; a soak that runs out of minutes fails rather than claims the rest."""
    deadline = time.monotonic() + MINUTES * 60
    for number in range(full if SOAKING else fast):
        assert time.monotonic() < deadline, f"only {number} of {full} rounds fitted into {MINUTES:.0f} minutes"
        yield number
