"""Whose past is kept: the cluster's always, of topics and groups the liveliest, up to a number of series."""

from __future__ import annotations

from threading import Lock
from typing import Final, NamedTuple

from penstock.console.sampler.rings import Rings

SERIES_MAX: Final = 1_000
"""Some 30 KB each."""
PROTECTED: Final = "cluster"


class Measured(NamedTuple):
    """What a series is of: `kind` cluster, broker, topic or group, `name` which one, `number` what of it."""

    kind: str
    name: str
    number: str


class Past:
    """Series by what they are of. The sampler writes, those who answer read; a lock keeps them apart for a moment."""

    def __init__(self, most: int = SERIES_MAX) -> None:
        self._most = most
        self._series: dict[Measured, Rings] = {}
        self._lock = Lock()

    def put(self, of: Measured, at_ms: int, value: float) -> None:
        """A series begins with the first value that is not nothing, and the one that was quiet longest makes room."""
        with self._lock:
            rings = self._series.get(of)
            if rings is None:
                if not value and of.kind != PROTECTED:
                    return
                if len(self._series) >= self._most and not self._make_room(at_ms):
                    return
                rings = self._series[of] = Rings()
            rings.put(at_ms, value)

    def points(self, of: Measured, now_ms: int, step_s: int = 10, wanted: int = 360) -> list[float | None]:
        """Oldest first, and nothing at all of what was always quiet."""
        with self._lock:
            rings = self._series.get(of)
            return rings.of_step(step_s).points(now_ms, wanted) if rings is not None else []

    def forget(self, kind: str, kept: set[str]) -> None:
        """Drops the series of what does not exist any more."""
        with self._lock:
            for of in [each for each in self._series if each.kind == kind and each.name not in kept]:
                del self._series[of]

    def __len__(self) -> int:
        return len(self._series)

    def _make_room(self, now_ms: int) -> bool:
        quiet = [of for of in self._series if of.kind != PROTECTED]
        if not quiet:
            return False
        oldest = min(quiet, key=lambda of: self._series[of].told_ms)
        if self._series[oldest].told_ms >= now_ms:
            return False  # all of them are as lively as this one
        del self._series[oldest]
        return True
