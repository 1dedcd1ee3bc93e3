"""What every view is made of: a picture, its past, and what may be seen of them now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.console.people.vision import Vision
from penstock.console.sampler.lags import EndsSeen
from penstock.console.sampler.past import Measured, Past
from penstock.console.sampler.picture import METADATA, Picture
from penstock.console.sampler.sampler import Outage


@dataclass(frozen=True, slots=True)
class Seeing:
    """One person's look at one cluster at one moment."""

    picture: Picture
    past: Past
    ends_seen: EndsSeen
    vision: Vision
    now_ms: int
    outage: Outage | None = None

    @property
    def whole(self) -> bool:
        """Whether all topics and groups may be seen: only then sums over all of them may be."""
        topics, groups = self.vision.topics, self.vision.groups
        return (topics is None or self.picture.topics.keys() <= topics) and (
            groups is None or self.picture.groups.keys() <= groups
        )

    def whole_group(self, group: str) -> bool:
        """Whether all that a group reads may be seen: its past is a sum over all of it."""
        return all(self.vision.topic(item.topic) for item in self.picture.committed.get(group, {}))

    def stamped(self, data: dict[str, Any], *parts: str) -> dict[str, Any]:
        """What is told with everything that the sampler saw: when the oldest of its parts was looked at, how long ago
        that is, and whether it can look now."""
        looked_ms = [at_ms for part in parts or (METADATA,) if (at_ms := self.picture.at_ms.get(part)) is not None]
        at_ms = min(looked_ms) if len(looked_ms) == len(parts or (METADATA,)) else None
        return {
            "as_of_ms": at_ms,
            "age_ms": None if at_ms is None else max(self.now_ms - at_ms, 0),
            "trouble": outage_words(self.outage),
            # The reasons may name what not everybody sees.
            "failed": dict(self.picture.failed) if self.whole and self.vision.cluster else {},
            **data,
        }

    def points(self, kind: str, name: str, number: str, step_s: int = 10, wanted: int = 360) -> list[float | None]:
        return self.past.points(Measured(kind, name, number), self.now_ms, step_s, wanted)

    def drawn(self, kind: str, name: str, step_s: int, **numbers: str) -> dict[str, Any]:
        """Series side by side, for a chart."""
        return {
            "step_s": step_s,
            "end_ms": self.now_ms,
            **{shown: self.points(kind, name, number, step_s) for shown, number in numbers.items()},
        }


def outage_words(outage: Outage | None) -> dict[str, Any] | None:
    if outage is None:
        return None
    return {"code": outage.code, "message": outage.message, "since_ms": outage.since_ms}


def text_of(number: int | None) -> str | None:
    """A number of 64 bits as the digits that it has."""
    return None if number is None else str(number)
