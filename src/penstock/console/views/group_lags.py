"""How far a group is behind, summed over what may be seen of what it reads."""

from __future__ import annotations

from penstock.console.sampler.lags import TopicLag, summed, waited_s
from penstock.console.views.seeing import Seeing


def group_lag(seeing: Seeing, group: str, topic: str | None = None) -> int | None:
    """Of all topics that may be seen, or of one; None where nothing was committed or an end is not known."""
    return summed([each.records for each in _visible(seeing, group, topic)])


def waits_s(seeing: Seeing, group: str, topic: str | None = None) -> float | None:
    """Since when the record waits that waits longest; None where that is not known of a partition that is behind."""
    # A wait that is not known is longer than all that are remembered: the greatest of the others would be too little.
    sinces = [each.since_ms for each in _visible(seeing, group, topic)]
    return waited_s(min(sinces), seeing.now_ms) if sinces else None


def _visible(seeing: Seeing, group: str, topic: str | None) -> list[TopicLag]:
    lag = seeing.picture.lags.get(group)
    if lag is None:
        return []
    if topic is not None:
        known = lag.topics.get(topic)
        return [known] if known is not None and seeing.vision.topic(topic) else []
    return [each for name, each in lag.topics.items() if seeing.vision.topic(name)]


def longest_s(waits: list[float | None]) -> float | None:
    """The longest of several waits, where all of them are known."""
    known = [wait for wait in waits if wait is not None]
    return max(known, default=None) if len(known) == len(waits) else None
