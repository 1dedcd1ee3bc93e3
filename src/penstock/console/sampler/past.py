"""Whose past is kept: the cluster's and its brokers', and of topics and groups the liveliest, so many of each.

Who is kept changes slowly. A newcomer takes a place only from one that has had it for a while and is much quieter, and
only a few do so a minute: otherwise places would go round among thousands that are all alike, and nobody would have a
past at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from heapq import nlargest, nsmallest
from threading import Lock
from typing import Final, NamedTuple

from penstock.console.sampler.rings import Rings

QUOTAS: Final = {"cluster": 1, "broker": 300, "topic": 350, "group": 250}
"""So many of each kind have a past: a series takes 30 KB, a group has two and the cluster three."""
REVIEW_MS: Final = 60_000
SWAPS_MAX: Final = 10
"""So often, and so many at once, places change hands."""
SETTLED_MS: Final = 600_000
"""Whoever has a place keeps it so long at least."""
LIVELIER_TIMES: Final = 2.0
_ALWAYS: Final = ("cluster", "broker")
"""Kinds of which a number that is nothing is worth keeping too."""
_SHARE: Final = 1 / 8
"""How much the newest look counts in what is called lively."""


class Measured(NamedTuple):
    """What a series is of: `kind` cluster, broker, topic or group, `name` which one, `number` what of it."""

    kind: str
    name: str
    number: str


class _Place:
    """One that is kept, with its series."""

    __slots__ = ("lively", "series", "since_ms")

    def __init__(self, since_ms: int, lively: float) -> None:
        self.since_ms, self.lively = since_ms, lively
        self.series: dict[str, Rings] = {}

    def put(self, at_ms: int, numbers: Mapping[str, float]) -> None:
        for number, value in numbers.items():
            rings = self.series.get(number)
            if rings is None:
                rings = self.series[number] = Rings()
            rings.put(at_ms, value)


class Past:
    """Series by what they are of. The sampler writes, those who answer read; a lock keeps them apart for a moment."""

    def __init__(self, quotas: Mapping[str, int] = QUOTAS) -> None:
        self._quotas = quotas
        self._places: dict[str, dict[str, _Place]] = {kind: {} for kind in quotas}
        self._review_ms = dict.fromkeys(quotas, 0)
        self._lock = Lock()

    def put(
        self, kind: str, at_ms: int, told: Mapping[str, Mapping[str, float]], lively: Mapping[str, float] | None = None
    ) -> None:
        """Numbers by name of everything of a kind. What was quiet always begins no series, and `lively` says who is
        worth a place where there are not enough of them."""
        how_lively = lively or {}
        with self._lock:
            places = self._places[kind]
            for name, place in places.items():
                place.put(at_ms, told.get(name, {}))
                place.lively += _SHARE * (how_lively.get(name, 0.0) - place.lively)
            room = self._quotas[kind] - len(places)
            full = room <= 0
            if full and at_ms < self._review_ms[kind]:
                return
            newcomers = [
                name
                for name, numbers in told.items()
                if name not in places and (kind in _ALWAYS or any(numbers.values()))
            ]
            if not newcomers:
                return
            chosen = nlargest(SWAPS_MAX if full else room, newcomers, key=lambda name: how_lively.get(name, 0.0))
            if full:
                self._review_ms[kind] = at_ms + REVIEW_MS
                chosen = self._make_room(places, chosen, how_lively, at_ms)
            for name in chosen:
                place = places[name] = _Place(at_ms, how_lively.get(name, 0.0))
                place.put(at_ms, told[name])

    def points(self, of: Measured, now_ms: int, step_s: int = 10, wanted: int = 360) -> list[float | None]:
        """Oldest first, and nothing at all of what has no past."""
        with self._lock:
            place = self._places[of.kind].get(of.name)
            rings = place.series.get(of.number) if place is not None else None
            return rings.of_step(step_s).points(now_ms, wanted) if rings is not None else []

    def forget(self, kind: str, there: Collection[str]) -> None:
        """Drops the series of what does not exist any more."""
        with self._lock:
            places = self._places[kind]
            for name in [each for each in places if each not in there]:
                del places[name]

    def minute(self, at_ms: int) -> dict[Measured, float]:
        """What every series was in the minute that a time lies in; those that nothing was told of are left out."""
        with self._lock:
            means = [(of, rings.of_step(60).mean(at_ms)) for of, rings in self._all()]
        return {of: mean for of, mean in means if mean is not None}

    def restore(self, told: Mapping[Measured, Mapping[int, float]]) -> None:
        """Takes over means by minute, counted from 1970, of what there is room for; what was seen here stays."""
        now_ms = 60_000 * max((max(minutes) for minutes in told.values() if minutes), default=0)
        for of, minutes in told.items():
            with self._lock:  # one after the other: those who answer wait for one series at most
                self._restore(of, minutes, now_ms)

    def _restore(self, of: Measured, minutes: Mapping[int, float], now_ms: int) -> None:
        places = self._places.get(of.kind)
        if places is None or not minutes:
            return
        place = places.get(of.name)
        if place is None:
            if len(places) >= self._quotas[of.kind]:
                return
            place = places[of.name] = _Place(now_ms, 0.0)
        rings = place.series.get(of.number)
        if rings is None:
            rings = place.series[of.number] = Rings()
        rings.restore(minutes)

    def __len__(self) -> int:
        return sum(1 for _ in self._all())

    def _all(self) -> Iterator[tuple[Measured, Rings]]:
        for kind, places in self._places.items():
            for name, place in places.items():
                for number, rings in place.series.items():
                    yield Measured(kind, name, number), rings

    def _make_room(
        self, places: dict[str, _Place], newcomers: list[str], lively: Mapping[str, float], now_ms: int
    ) -> list[str]:
        """Those of the newcomers for whom somebody much quieter went: the liveliest against the quietest."""
        settled = [name for name, place in places.items() if place.since_ms <= now_ms - SETTLED_MS]
        quietest = nsmallest(SWAPS_MAX, settled, key=lambda name: places[name].lively)
        taken = []
        for name, quiet in zip(newcomers, quietest, strict=False):
            if lively.get(name, 0.0) <= LIVELIER_TIMES * places[quiet].lively:
                break
            del places[quiet]
            taken.append(name)
        return taken
