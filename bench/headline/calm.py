"""Samples that the host did not disturb.

The host of a virtual machine takes its processors away now and then, and the kernel counts for how long ("steal" in
/proc/stat). On 2 cores, 3 s at 20 MB/s: p99 of 0.17 to 0.35 ms in the 13 samples without such a moment, 1.5 to 12 ms in
the nine with 30 ms of it or more, with our broker and with one that does nothing. So a sample during which
more than a little was taken is made again, for every broker alike, as long as there is time for it; the least disturbed
one counts. What was taken is the host's, not the broker's: no figure of a sample decides whether it is repeated.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

OF_LATENCY = 0.003
"""The share of the processors' time that may be taken; in three seconds of two cores that is 18 ms."""
OF_COST = 0.03
"""For processor time, which suffers less: a request of 61 µs took 88 with a fifth taken, and 61 with a 25th."""
TRIES_MAX = 3


def stolen_s(stat: str, ticks_per_s: int) -> float:
    """For how long processors were taken away since the machine started, by its /proc/stat."""
    figures = stat.split(maxsplit=9)
    return int(figures[8]) / ticks_per_s


def _stolen_s() -> float:
    """0 where nobody keeps such an account."""
    told = Path("/proc/stat")
    return stolen_s(told.read_text(), os.sysconf("SC_CLK_TCK")) if told.exists() else 0.0


class Calm:
    """Repeats samples for at most `again_s_max` seconds in all, and counts what became of them."""

    def __init__(
        self,
        again_s_max: float,
        *,
        stolen_s: Callable[[], float] = _stolen_s,
        clock: Callable[[], float] = time.perf_counter,
        cores: int | None = None,
    ) -> None:
        self._left_s = again_s_max
        self._stolen_s, self._clock, self._cores = stolen_s, clock, cores or os.cpu_count() or 1
        self.samples = self.repeated = self.disturbed = 0

    def sampled(self, sample: Callable[[], T], share_max: float) -> T:
        """What `sample` says in the first of its tries that was calm enough, or in the calmest."""
        self.samples += 1
        least, calmest, took_s = self._tried(sample)
        tries = 1
        while least > share_max and tries < TRIES_MAX and self._left_s >= took_s:
            share, found, took_s = self._tried(sample)
            self._left_s -= took_s
            self.repeated += 1
            tries += 1
            if share < least:
                least, calmest = share, found
        if least > share_max:
            self.disturbed += 1
        return calmest

    def _tried(self, sample: Callable[[], T]) -> tuple[float, T, float]:
        """(the share of the processors' time that was taken, what was found, how long it took)."""
        stolen_s, began = self._stolen_s(), self._clock()
        found = sample()
        took_s = self._clock() - began
        return (self._stolen_s() - stolen_s) / (took_s * self._cores), found, took_s

    def words(self) -> str:
        return (
            f"Of {self.samples} samples of processor time and latency, {self.disturbed} count although the host took "
            f"processors away for more than {OF_COST:.0%} (latency: {OF_LATENCY:.1%}) of the time; {self.repeated} "
            "tries were repeated for that reason, whatever they said and whosever they were."
        )
