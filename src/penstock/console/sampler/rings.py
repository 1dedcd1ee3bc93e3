"""The past of one number in bounded memory: an hour by 10 s, a day by minutes, two weeks by 10 minutes. Pure.

Each ring has the mean of what was told for a slot. Slots that nothing was told for are not known, which is not zero.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from math import isnan, nan
from typing import Final

STEPS: Final = ((10_000, 360), (60_000, 1_440), (600_000, 2_016))
"""The length of a slot in ms, and how many there are."""


class Ring:
    """The last `slots` slots of `step_ms` each."""

    __slots__ = ("_count", "_last", "_slots", "_sum", "_values", "step_ms")

    def __init__(self, step_ms: int, slots: int) -> None:
        self.step_ms, self._slots = step_ms, slots
        self._values: array[float] = array("d")
        self._last = -1
        """The slot that was told of last, counted from 1970."""
        self._sum, self._count = 0.0, 0

    def put(self, at_ms: int, value: float) -> None:
        slot = at_ms // self.step_ms
        if slot < self._last:
            return  # the clock was set back; what is known stays
        self._reach(slot)
        self._sum += value
        self._count += 1
        self._values[slot % self._slots] = self._sum / self._count

    def fill(self, means: Mapping[int, float]) -> None:
        """Puts means by slot where nothing is known."""
        if not means:
            return
        self._reach(max(means))
        for slot, mean in means.items():
            if slot > self._last - self._slots and isnan(self._values[slot % self._slots]):
                self._values[slot % self._slots] = mean

    def mean(self, at_ms: int) -> float | None:
        """What is known of the slot that a time lies in."""
        (found,) = self.points(at_ms, 1)
        return found

    def points(self, now_ms: int, wanted: int) -> list[float | None]:
        """The last slots up to now, oldest first; None where nothing was told."""
        now = now_ms // self.step_ms
        found: list[float | None] = []
        for slot in range(now - min(wanted, self._slots) + 1, now + 1):
            known = bool(self._values) and self._last - self._slots < slot <= self._last
            value = self._values[slot % self._slots] if known else nan
            found.append(None if isnan(value) else value)
        return found

    def _reach(self, slot: int) -> None:
        """Makes a slot part of the ring; those that are passed on the way are not known."""
        if not self._values:
            self._values = array("d", [nan]) * self._slots
        if slot > self._last:
            first = max(self._last + 1, slot - self._slots + 1) if self._last >= 0 else slot
            for passed in range(first, slot + 1):
                self._values[passed % self._slots] = nan
            self._last, self._sum, self._count = slot, 0.0, 0


class Rings:
    """One number at all three steps."""

    __slots__ = ("rings",)

    def __init__(self) -> None:
        self.rings = tuple(Ring(step, slots) for step, slots in STEPS)

    def put(self, at_ms: int, value: float) -> None:
        for ring in self.rings:
            ring.put(at_ms, value)

    def restore(self, minutes: Mapping[int, float]) -> None:
        """Takes over means by minute, counted from 1970, where nothing is known; the ten seconds stay unknown."""
        tens: dict[int, list[float]] = {}
        for minute, mean in minutes.items():
            tens.setdefault(minute // 10, []).append(mean)
        self.of_step(60).fill(minutes)
        self.of_step(600).fill({slot: sum(means) / len(means) for slot, means in tens.items()})

    def of_step(self, step_s: int) -> Ring:
        return next((ring for ring in self.rings if ring.step_ms == step_s * 1_000), self.rings[0])
