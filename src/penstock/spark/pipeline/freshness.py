"""How fresh sinks are, in seconds: how long the oldest record has been in its topic that a sink has not taken yet.

It is the record's own timestamp that counts, so a pipeline that was away for an hour says so when it comes back. With
nothing to take a sink is as fresh as can be, however long nobody has written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from penstock.spark.pipeline.home import UNKNOWN_MS, SinkProgress
from penstock.spark.pipeline.lag import Log
from penstock.spark.progress.patience import PATIENCE_S, within

PLACES_MAX: Final = 500
"""Partitions that are asked in one look; those of which most waits come first."""
OFFSETS: Final = 1_000
"""In which a record is looked for; others may hold markers, or what was aborted."""
_BYTES: Final = {"fetch_max_bytes": "262144", "max_partition_fetch_bytes": "32768"}
"""One record is wanted of each partition, and a broker gives no less than a whole batch."""


class Place(NamedTuple):
    """Where a reader stands: the next offset of a log."""

    log: Log
    offset: int
    end: int


Times = Mapping[tuple[Log, int], int]
"""When the record was written that a reader waits for, by where the reader stands. 0: nothing but gaps waits there."""


def places_of(sinks: Iterable[SinkProgress]) -> list[Place]:
    """Where something waits, each once, those first of which most waits. Pure."""
    found = {
        Place(Log.of(each), each.offset, each.end): each.lag
        for sink in sinks
        for each in sink.partitions
        if each.lag > 0
    }
    return sorted(found, key=lambda place: -found[place])[:PLACES_MAX]


def as_fresh(sink: SinkProgress, times: Times) -> SinkProgress:
    """With the time of the oldest record that it has not taken; as far as the times of its places are known. Pure."""
    if not sink.begun:
        return replace(sink, waiting_since_ms=UNKNOWN_MS)
    known = [times.get((Log.of(each), each.offset), UNKNOWN_MS) for each in sink.partitions if each.lag > 0]
    if any(each == UNKNOWN_MS for each in known):
        return replace(sink, waiting_since_ms=UNKNOWN_MS)
    return replace(sink, waiting_since_ms=min((each for each in known if each > 0), default=0))


@dataclass(slots=True)
class Clockwork:
    """Asks when records were written, each place once: a sink that does not move costs nothing."""

    times: dict[tuple[Log, int], int] = field(default_factory=dict)

    def look(self, settings: Mapping[str, Any], sinks: Iterable[SinkProgress], patience_s: float = PATIENCE_S) -> Times:
        """Raises what keeps brokers from being asked at all."""
        places = places_of(sinks)
        kept = {(place.log, place.offset) for place in places}
        self.times = {key: at_ms for key, at_ms in self.times.items() if key in kept and at_ms > 0}
        asked = [place for place in places if (place.log, place.offset) not in self.times]
        self.times |= ask_times(settings, asked, patience_s)
        return self.times


def ask_times(settings: Mapping[str, Any], places: Iterable[Place], patience_s: float = PATIENCE_S) -> Times:
    """When the first record was written at or behind each place. One that cannot be read is left out."""
    import asyncio

    from penstock.client.errors import ClientError
    from penstock.spark.dialogue import for_process, reader_for

    wanted = list(places)
    if not wanted:
        return {}

    async def ask(place: Place) -> int:
        reader = reader_for(_reader_settings(settings, committed=place.log.committed))
        return await _first_time(reader, place)

    async def ask_all() -> list[int | BaseException]:
        return await asyncio.gather(*map(ask, wanted), return_exceptions=True)

    for committed in {place.log.committed for place in wanted}:
        # Readers are made before the loop is taken by the questions.
        reader_for(_reader_settings(settings, committed=committed))
    found = for_process().run(within(ask_all(), patience_s))
    for outcome in found:
        if isinstance(outcome, BaseException) and not isinstance(outcome, (ClientError, TimeoutError)):
            raise outcome
    return {
        (place.log, place.offset): at_ms
        for place, at_ms in zip(wanted, found, strict=True)
        if isinstance(at_ms, int) and at_ms != UNKNOWN_MS
    }


async def _first_time(reader: Any, place: Place) -> int:
    from penstock.client.spans import Piece, Span

    topic, partition = place.log.partition
    end = min(place.end, place.offset + OFFSETS)
    items = reader.read([Span(topic, "", partition, place.offset, end)])
    try:
        async for item in items:
            if isinstance(item, Piece) and item.rows:
                return int(memoryview(item.sink.buffers()["timestamp"]).cast("q")[0])
    finally:
        await items.aclose()
    return 0 if end == place.end else UNKNOWN_MS


def _reader_settings(settings: Mapping[str, Any], *, committed: bool) -> dict[str, str]:
    from dataclasses import fields

    from penstock.client.settings import ConsumerSettings

    known = {setting.name for setting in fields(ConsumerSettings)}
    given = {name: str(value) for name, value in settings.items() if name in known}
    return {**given, **_BYTES, "isolation_level": "read_committed" if committed else "read_uncommitted"}
