"""What two sights of a partition tell: how fast records come and go, and when there would be no lag."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.model.ids import TopicPartition
    from penstock.operations.explaining.sights import GroupFacts

SPAN_MIN_MS: Final = 3_000
"""Of less nothing is said about speed: consumers commit every 5 s by default, and a moment is no trend."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Records a second that are written, and that are read and committed."""

    incoming: float
    outgoing: float
    lag: int

    @property
    def drain_s(self) -> float | None:
        """Seconds until there is no lag if all goes on like this; None: never."""
        if not self.lag:
            return 0.0
        gain = self.outgoing - self.incoming
        return self.lag / gain if gain > 0 else None


def pace_of(facts: GroupFacts, item: TopicPartition) -> Pace | None:
    """None when it was not seen for long enough, or not all of it could be asked."""
    before, after = facts.first.partitions.get(item), facts.last.partitions[item]
    if before is None or facts.span_ms < SPAN_MIN_MS or min(before.end, after.end) < 0:
        return None
    if before.committed is None or after.committed is None:
        return None
    seconds = facts.span_ms / 1_000
    # Somebody who sets the group back, or makes the topic anew, is no reader.
    read = max(after.committed - before.committed, 0)
    return Pace(max(after.end - before.end, 0) / seconds, read / seconds, after.lag)


def stands(facts: GroupFacts, item: TopicPartition) -> bool:
    """Whether its position never moved while one member had the partition and records were there to be read."""
    last = facts.last.partitions[item]
    seen = [sight.partitions.get(item) for sight in facts.sights]
    return all(
        part is not None and part.lag > 0 and (part.committed, part.member_id) == (last.committed, last.member_id)
        for part in seen
    )


def paces_of(facts: GroupFacts) -> dict[TopicPartition, Pace]:
    found = ((item, pace_of(facts, item)) for item in facts.last.partitions)
    return {item: pace for item, pace in found if pace is not None}


def together(paces: Iterable[Pace]) -> Pace:
    seen = list(paces)
    return Pace(sum(p.incoming for p in seen), sum(p.outgoing for p in seen), sum(p.lag for p in seen))


def slowest_drain_s(paces: Iterable[Pace]) -> float | None:
    """A group has caught up when its last partition has; None when one of them never does."""
    drains = [pace.drain_s for pace in paces]
    known = [drain for drain in drains if drain is not None]
    return max(known, default=0.0) if len(known) == len(drains) else None
