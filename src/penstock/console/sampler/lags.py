"""How far groups are behind, in records and in seconds. Pure but for its own memory of ends.

A position is as many seconds behind as have passed since the end of the log stood there. The ends of what groups read
are remembered for a quarter of an hour; of a position older than that no number is told. Positions come with the ends
that were asked for right after them: ends that are older would make a lag too small, and newer ones too large.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from penstock.model.ids import TopicPartition

LOOKS_KEPT: Final = 90
PARTITIONS_MAX: Final = 30_000
"""Of so many partitions ends are remembered: 90 looks of 8 bytes each."""
UNKNOWN: Final = -1.0
"""In place of a time: what waits came before anybody looked."""


class Standing(NamedTuple):
    """A position, the end of the log as it was right after, and records a second that were read since the look before.

    `end` is the high watermark, or the last stable offset for a group of which it is known that it reads no further.
    """

    offset: int
    end: int | None
    rate: float | None

    @property
    def lag(self) -> int | None:
        """Never less than none: a position may lie behind the end of a log that was cut."""
        return None if self.end is None else max(self.end - self.offset, 0)


class TopicLag(NamedTuple):
    """How far a group is behind in one topic; `since_ms` is when what waits longest came, `inf` if nothing waits."""

    records: int | None
    since_ms: float


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group at the time when its positions were asked for; `consumed` is records a second over all it reads."""

    at_ms: int
    topics: Mapping[str, TopicLag]
    consumed: float | None

    @property
    def records(self) -> int | None:
        return summed([each.records for each in self.topics.values()])


class EndsSeen:
    """Where logs ended at each of the last looks. One thread writes; readers see a look late at worst."""

    def __init__(self) -> None:
        self._times: array[int] = array("q", [0]) * LOOKS_KEPT
        self._ends: dict[TopicPartition, array[int]] = {}
        self._looks = 0

    def put(self, at_ms: int, ends: Mapping[TopicPartition, int], wanted: Iterable[TopicPartition]) -> None:
        """Remembers the ends of the partitions that somebody reads, and forgets the others."""
        slot = self._looks % LOOKS_KEPT
        kept: dict[TopicPartition, array[int]] = {}
        for item in wanted:
            if len(kept) >= PARTITIONS_MAX:
                break
            known = self._ends.get(item)
            kept[item] = known if known is not None else array("q", [-1]) * LOOKS_KEPT
            kept[item][slot] = ends.get(item, -1)
        self._ends = kept
        self._times[slot] = at_ms
        self._looks += 1

    def since_ms(self, item: TopicPartition, committed: int, end: int) -> float:
        """When the record at a position came: `inf` if there is none, UNKNOWN if that is longer ago than is kept."""
        if committed >= end:
            return inf
        seen = self._ends.get(item)
        if seen is None:
            return UNKNOWN
        later: tuple[int, int] | None = None
        for look in range(self._looks - 1, max(self._looks - LOOKS_KEPT, 0) - 1, -1):
            at_ms, stood = self._times[look % LOOKS_KEPT], seen[look % LOOKS_KEPT]
            if stood < 0:
                continue
            if stood > committed:
                later = (at_ms, stood)
            elif later is None:
                return at_ms  # it came after the last look
            else:
                # The record came between two looks; records are taken to have come evenly.
                share = (committed - stood) / (later[1] - stood)
                return at_ms + share * (later[0] - at_ms)
        return UNKNOWN  # it waited already when the first look was taken

    def behind_s(self, item: TopicPartition, committed: int, end: int, now_ms: int) -> float | None:
        """Since when the record at a position waits; None when that is longer ago than is remembered."""
        return waited_s(self.since_ms(item, committed, end), now_ms)


def waited_s(since_ms: float, now_ms: int) -> float | None:
    """Seconds since a time that `EndsSeen.since_ms` told; the least of several such times is the longest wait."""
    if since_ms == UNKNOWN:
        return None
    return max(now_ms - since_ms, 0.0) / 1_000 if since_ms != inf else 0.0


def stand(
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    before: Mapping[TopicPartition, Standing],
    seconds: float,
) -> dict[TopicPartition, Standing]:
    """Where a group stands, beside where it stood so many seconds before."""
    found = {}
    for item, offset in positions.items():
        earlier, rate = before.get(item), None
        if earlier is not None and seconds > 0:
            read = max(offset - earlier.offset, 0) / seconds
            # Commits come every few seconds, so one look has two of them and the next one none.
            rate = read if earlier.rate is None else (read + earlier.rate) / 2
        found[item] = Standing(offset, ends.get(item), rate)
    return found


def group_lag(standings: Mapping[TopicPartition, Standing], seen: EndsSeen, at_ms: int) -> GroupLag:
    """What a group's standings add up to, by topic."""
    records: dict[str, int | None] = {}
    since_ms: dict[str, float] = {}
    for item, standing in standings.items():
        topic, lag = item.topic, standing.lag
        known = records.get(topic, 0)
        # A sum in which one partition is missing would be a wrong number.
        records[topic] = None if lag is None or known is None else known + lag
        since = UNKNOWN
        if standing.end is not None:
            since = seen.since_ms(item, standing.offset, standing.end) if lag else inf
        since_ms[topic] = min(since_ms.get(topic, inf), since)
    rates = [each.rate for each in standings.values() if each.rate is not None]
    topics = {topic: TopicLag(records[topic], since_ms[topic]) for topic in records}
    return GroupLag(at_ms, topics, sum(rates) if rates else None)


def drain_s(lag: int | None, rate_in: float | None, rate_out: float | None) -> float | None:
    """How long until nothing waits if both go on like this; None when that is not known, or never."""
    if lag == 0:
        return 0.0
    if lag is None or rate_in is None or rate_out is None or rate_out <= rate_in:
        return None
    return lag / (rate_out - rate_in)


def summed(known: Iterable[int | None]) -> int | None:
    """A sum; None of nothing, and where one of them is not known."""
    total: int | None = None
    for each in known:
        if each is None:
            return None
        total = each if total is None else total + each
    return total


def trend(points: Iterable[float | None]) -> str:
    """Whether a lag grows: the mean of the last third beside that of the first."""
    known = [point for point in points if point is not None]
    if len(known) < 6:
        return "unknown"
    third = len(known) // 3
    early, late = sum(known[:third]) / third, sum(known[-third:]) / third
    least = max(1.0, 0.1 * max(early, late))
    if late - early > least:
        return "growing"
    return "falling" if early - late > least else "steady"
