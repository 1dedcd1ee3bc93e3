"""Letters of a topic: read in order, from where each origin's were read to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

from penstock.client.admin import Admin
from penstock.client.consumer import Consumer
from penstock.client.errors import UnknownTopic
from penstock.model.ids import TopicPartition
from penstock.spark.errors import Missing
from penstock.spark.redrive.chunks import Chunk
from penstock.spark.redrive.marks import Marks, identity_of
from penstock.spark.redrive.records import letter_of
from penstock.spark.values.letters import DeadLetter

TWINS_WITHIN: Final = 100_000
"""Letters come at least once: a batch that is played again brings its letters again, behind those of the first time."""


class TopicLetters:
    """Those of one topic. `origins` are the topics that are named to come back; none when a pattern says which."""

    def __init__(self, admin: Admin, settings: Mapping[str, Any], topic: str, origins: Sequence[str]) -> None:
        self._admin, self._settings, self._topic = admin, settings, topic
        self._origins = frozenset(origins)
        self.place = ""
        self._ends: dict[TopicPartition, int] = {}
        self._first: dict[TopicPartition, int] = {}

    async def opened(self) -> TopicLetters:
        try:
            info = await self._admin.describe_topic(self._topic, offsets=False, configs=False)
        except UnknownTopic:
            raise Missing(
                f"the topic {self._topic} of dead letters is not there: no letter was written yet, or it is on another "
                "cluster"
            ) from None
        # A topic that was made anew has other letters at the same offsets.
        self.place = f"topic:{self._topic}#{info.id}"
        places = [TopicPartition(self._topic, each.partition) for each in info.partitions]
        ends = (await self._admin.offsets(dict.fromkeys(places, "latest"), read_committed=True)).checked()
        first = (await self._admin.offsets(dict.fromkeys(places, "earliest"))).checked()
        self._ends = {place: found.offset for place, found in ends.items()}
        self._first = {place: found.offset for place, found in first.items()}
        return self

    async def total(self, marks: Marks) -> int:
        return sum(end - self._start(marks, place) for place, end in self._ends.items())

    def _start(self, marks: Marks, place: TopicPartition) -> int:
        """Where the first letter is that may be waiting."""
        known = [marks.position(origin, place.partition) for origin in self._origins]
        return min(max(min(known, default=0), self._first[place]), self._ends[place])

    async def chunks(
        self, marks: Marks, wanted: Callable[[str], bool], most: Callable[[], int]
    ) -> AsyncIterator[Chunk]:
        seen: OrderedDict[tuple[str, int, int, int], None] = OrderedDict()
        starts = {place: self._start(marks, place) for place in self._ends}
        mine = {**self._settings, "isolation_level": "read_committed", "offset_reset": "earliest"}
        async with Consumer(**mine) as consumer:
            consumer.assign(self._ends)
            for place, start in starts.items():
                consumer.seek(place, max(self._first[place], start - TWINS_WITHIN))
            left = dict(self._ends)
            while True:
                for place in [each for each, end in left.items() if await consumer.position(each) >= end]:
                    del left[place]
                    consumer.pause(place)
                if not left:
                    return
                records = await consumer.poll(max(1, most()), timeout_ms=500)
                if records:
                    yield _chunk(records, marks, wanted, seen, starts, self._origins, self._ends)

    def marks_of(self, marks: Marks, chunk: Chunk) -> list[tuple[bytes, bytes]]:
        return marks.read_to(sorted(chunk.origins), chunk.read)


def _chunk(
    records: Sequence[Any],
    marks: Marks,
    wanted: Callable[[str], bool],
    seen: OrderedDict[tuple[str, int, int, int], None],
    starts: Mapping[TopicPartition, int],
    origins: frozenset[str],
    ends: Mapping[TopicPartition, int],
) -> Chunk:
    letters: list[DeadLetter] = []
    read: dict[int, int] = {}
    told, twins, others, looked = set(origins), 0, 0, 0
    for record in records:
        place = TopicPartition(record.topic, record.partition)
        if record.offset >= ends[place]:
            continue
        fresh = record.offset >= starts[place]
        looked += fresh
        if fresh:
            read[record.partition] = record.offset + 1
        letter = letter_of(record.key, record.value, record.headers)
        if letter is None:
            others += fresh
            continue
        if not wanted(letter.topic):
            continue
        told.add(letter.topic)
        whose = (letter.topic, letter.partition, *identity_of(letter))
        known = whose in seen
        seen[whose] = None
        if len(seen) > TWINS_WITHIN:
            seen.popitem(last=False)
        if record.offset < marks.position(letter.topic, record.partition):
            continue
        if known:
            twins += 1
        else:
            letters.append(letter)
    return Chunk(letters, looked, read, frozenset(told), twins, others)
