"""How far a group is behind, summed over what it reads."""

from __future__ import annotations

from penstock.console.sampler.picture import Picture
from penstock.console.views.seeing import Seeing


def group_lag(picture: Picture, group: str, topic: str | None = None) -> int | None:
    """Of all topics or of one; None where nothing was committed or no end is known."""
    positions = picture.committed.get(group, {})
    lags = [
        max(picture.ends[item] - found.offset, 0)
        for item, found in positions.items()
        if item in picture.ends and (topic is None or item.topic == topic)
    ]
    return sum(lags) if lags else None


def waits_s(seeing: Seeing, group: str) -> float | None:
    """Since when the record waits that waits longest; None where that is not known of any partition that is behind."""
    picture = seeing.picture
    found = [
        seeing.ends_seen.behind_s(item, position.offset, picture.ends[item], seeing.now_ms)
        for item, position in picture.committed.get(group, {}).items()
        if item in picture.ends
    ]
    known = [each for each in found if each is not None]
    # A wait that is not known is longer than all that are remembered: the greatest of the others would be too little.
    return max(known) if known and len(known) == len(found) else None
