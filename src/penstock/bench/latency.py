"""Latency without coordinated omission: what was due when, and how late it was done. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@dataclass(frozen=True)
class Pace:
    """A fixed rate. Something is due whether or not what came before it is done: no stall takes anything off it."""

    per_s: float
    seconds: float

    @property
    def total(self) -> int:
        return max(1, round(self.per_s * self.seconds))

    def due_s(self, number: int) -> float:
        """When this one is due, counted from the start."""
        return number / self.per_s

    def due_by(self, at_s: float) -> int:
        """How many are due by then."""
        # The last one due by 0.3 s at 10 a second is number 3, whatever 0.3 is in binary.
        return max(0, min(self.total, math.floor(at_s * self.per_s + 1e-9) + 1))


def quantiles(latencies_ms: Sequence[float]) -> dict[str, float]:
    """By the nearest rank: of a hundred the p99 is the 99th, and max is the last."""
    ordered = sorted(latencies_ms)
    return {name: ordered[max(0, math.ceil(share * len(ordered)) - 1)] for name, share in QUANTILES.items()}


def slower_than(quantile: str, count: int) -> float:
    """One record in how many is slower than this quantile; for max that is all there were."""
    share = QUANTILES[quantile]
    return float(count) if share == 1.0 else 1 / (1 - share)
