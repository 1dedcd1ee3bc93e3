"""How fast counters rise, from one snapshot to the next. Pure: time comes with the call."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.agent.admin.snapshot import InputSnapshot

WINDOW_S: Final = 3.0
"""A rate is that of so long, so that it does not jump with every portion."""
TREND_EVERY_S: Final = 2.0
TREND_POINTS: Final = 24


@dataclass(frozen=True, slots=True)
class Rate:
    """Of one input, now and over the last minute."""

    events_per_s: float = 0.0
    bytes_per_s: float = 0.0
    trend: tuple[float, ...] = ()


class Rates:
    """Fed with every snapshot; inputs may come and go with reloads."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def feed(self, inputs: Mapping[str, InputSnapshot], now_s: float) -> dict[str, Rate]:
        self._seen = {name: self._seen.get(name) or _Seen() for name in inputs}
        return {name: self._seen[name].feed(now_s, each.events, each.bytes) for name, each in inputs.items()}


class _Seen:
    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, int]] = deque()
        self._trend: deque[float] = deque([0.0] * TREND_POINTS, maxlen=TREND_POINTS)
        self._marked: tuple[float, int] | None = None

    def feed(self, now_s: float, events: int, size_bytes: int) -> Rate:
        looks = self._looks
        if looks and (events < looks[-1][1] or size_bytes < looks[-1][2]):
            # The counters begin anew: the input, or the whole agent, was started again.
            looks.clear()
            self._marked = None
        looks.append((now_s, events, size_bytes))
        while len(looks) > 2 and looks[1][0] <= now_s - WINDOW_S:
            looks.popleft()
        self._mark(now_s, events)
        first = looks[0]
        took_s = now_s - first[0]
        if took_s <= 0:
            return Rate(trend=tuple(self._trend))
        return Rate((events - first[1]) / took_s, (size_bytes - first[2]) / took_s, tuple(self._trend))

    def _mark(self, now_s: float, events: int) -> None:
        if self._marked is None:
            self._marked = (now_s, events)
        elif now_s - self._marked[0] >= TREND_EVERY_S:
            self._trend.append((events - self._marked[1]) / (now_s - self._marked[0]))
            self._marked = (now_s, events)
