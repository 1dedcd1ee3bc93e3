"""Offsets that were committed in transactions which have not ended yet.

They count when the marker of their transaction says so, but in the order in which they were written: a plain commit
that was written after one of them stays, however late the transaction ends. Nobody has to remember where the offset
that is in force was written: whenever one comes into force, what is pending and was written before it is overtaken.
"""

from __future__ import annotations

from penstock.coordinators.decision import StateRecord
from penstock.model.ids import ZERO_UUID, Offset, Uuid
from penstock.protocol.disk.classic_group_records import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue

Place = tuple[str, str, int]
"""The group, the topic and the partition that an offset is of."""


class PendingOffsets:
    """By producer and place, the last record of an open transaction and where it lies; None for one that lost.

    `_producers` has the producers of each place, by group.
    """

    __slots__ = ("_open", "_producers")

    def __init__(self) -> None:
        self._open: dict[int, dict[Place, tuple[StateRecord | None, Offset]]] = {}
        self._producers: dict[str, dict[Place, dict[int, None]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def __bool__(self) -> bool:
        return bool(self._open)

    def is_open(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction may still change this offset, or has tried to."""
        places = self._producers.get(group_id)
        return places is not None and (group_id, topic, partition) in places

    def of_group(self, group_id: str) -> list[tuple[str, int]]:
        """The partitions of which a group has pending offsets."""
        return [(topic, partition) for _, topic, partition in self._producers.get(group_id, ())]

    def of_topic(self, topic: str) -> dict[str, dict[int, set[Uuid]]]:
        """By group and partition, the ids of the topics of this name that have pending offsets."""
        found: dict[str, dict[int, set[Uuid]]] = {}
        for group_id, places in self._producers.items():
            for place, producers in places.items():
                if place[1] == topic:
                    records = (self._open[producer][place][0] for producer in producers)
                    ids = {_topic_id(record) for record in records if record is not None}
                    found.setdefault(group_id, {})[place[2]] = ids
        return found

    def add(self, producer_id: int, record: StateRecord, offset: Offset) -> None:
        place = _place_of(record.key, offset)
        self._open.setdefault(producer_id, {})[place] = (record, offset)
        self._producers.setdefault(place[0], {}).setdefault(place, {})[producer_id] = None

    def overtaken(self, key: LegacyOffsetCommitKey | OffsetCommitKey, offset: Offset, *, gone: bool) -> None:
        """An offset has come into force, or is `gone`, by a record that lies at `offset`."""
        place = _place_of(key, offset)
        for producer_id in list(self._producers.get(place[0], {}).get(place, ())):
            places = self._open[producer_id]
            written_at = places[place][1]
            if written_at > offset:
                continue
            if not gone:
                places[place] = (None, written_at)
                continue
            self._forget(producer_id, place)
            del places[place]
            if not places:
                del self._open[producer_id]

    def end(self, producer_id: int) -> list[tuple[StateRecord, Offset]]:
        """Forgets the transaction of a producer; what of it is still the last word, in the order of the log."""
        places = self._open.pop(producer_id, {})
        for place in places:
            self._forget(producer_id, place)
        winners = [(record, offset) for record, offset in places.values() if record is not None]
        return sorted(winners, key=lambda winner: winner[1])

    def _forget(self, producer_id: int, place: Place) -> None:
        places = self._producers[place[0]]
        producers = places[place]
        del producers[producer_id]
        if not producers:
            del places[place]
            if not places:
                del self._producers[place[0]]


def _topic_id(record: StateRecord) -> Uuid:
    return record.value.topic_id if isinstance(record.value, OffsetCommitValue) else ZERO_UUID


def _place_of(key: object, offset: Offset) -> Place:
    if isinstance(key, LegacyOffsetCommitKey | OffsetCommitKey):
        return (key.group, key.topic, key.partition)
    return ("", "", offset)  # no other kind of record is ever written in a transaction; each would be on its own
