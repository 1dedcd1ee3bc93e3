"""How often: a few times in `make test`, the full count in `make soak`, never longer than its minutes.

A soak that runs out of minutes has found nothing wrong, and it has not done what was asked either. So it does not fail,
and its last words are how many rounds held of how many: who asked for a hundred kills counts them there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

SOAKING = os.environ.get("PENSTOCK_SOAK") == "1"
MINUTES = float(os.environ.get("PENSTOCK_SOAK_MINUTES", "30"))


def time_s() -> float:
    """The clock of what goes by time. `make test` counts the seconds that a processor worked for this process, so that
    it tries as many seeds beside others as alone."""
    return time.monotonic() if SOAKING else time.process_time()


@dataclass
class Count:
    """Rounds of one test."""

    wanted: int
    held: int = 0


HELD: dict[str, list[Count]] = {}
"""By test, each count in it."""


def rounds(fast: int, full: int) -> Iterator[int]:
    """0, 1, 2 … up to the count that applies, or, in a soak, up to its minutes. One at least is tried."""
    deadline = time.monotonic() + MINUTES * 60
    count = Count(full if SOAKING else fast)
    HELD.setdefault(os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0], []).append(count)
    for number in range(count.wanted):
        if number and SOAKING and time.monotonic() >= deadline:
            return
        yield number
        # Whoever asks for the next one is through with this one.
        count.held = number + 1


def told() -> list[str]:
    """How many rounds held of how many, by test; what fell short first."""
    lines = []
    for test, counts in HELD.items():
        held, wanted = sum(each.held for each in counts), sum(each.wanted for each in counts)
        short = "" if held == wanted else f", out of time after {MINUTES:.0f} minutes or failed"
        lines.append((held >= wanted, f"{held} of {wanted} rounds held{short}: {test}"))
    return [line for _, line in sorted(lines)]
