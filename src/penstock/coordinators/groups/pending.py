"""Offsets that were committed in transactions which have not ended yet.

They count when the marker of their transaction says so, but in the order in which they were written: a plain commit
that was written after one of them stays, however late the transaction ends. Nobody has to remember where the offset
that is in force was written: whenever one comes into force, what is pending and was written before it is overtaken.
"""

from __future__ import annotations

from penstock.coordinators.decision import StateRecord
from penstock.model.ids import Offset
from penstock.protocol.disk.classic_group_records import LegacyOffsetCommitKey, OffsetCommitKey

Place = tuple[str, str, int]
"""The group, the topic and the partition that an offset is of."""


class PendingOffsets:
    """By producer and place, the last record of an open transaction and where it lies; None for one that lost."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[int, dict[Place, tuple[StateRecord | None, Offset]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def __bool__(self) -> bool:
        return bool(self._open)

    def is_open(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction may still change this offset, or has tried to."""
        place = (group_id, topic, partition)
        return any(place in places for places in self._open.values())

    def add(self, producer_id: int, record: StateRecord, offset: Offset) -> None:
        self._open.setdefault(producer_id, {})[_place_of(record.key, offset)] = (record, offset)

    def overtaken(self, key: LegacyOffsetCommitKey | OffsetCommitKey, offset: Offset, *, gone: bool) -> None:
        """An offset has come into force, or is `gone`, by a record that lies at `offset`."""
        place = _place_of(key, offset)
        for producer_id, places in list(self._open.items()):
            known = places.get(place)
            if known is None or known[1] > offset:
                continue
            if not gone:
                places[place] = (None, known[1])
                continue
            del places[place]
            if not places:
                del self._open[producer_id]

    def end(self, producer_id: int) -> list[tuple[StateRecord, Offset]]:
        """Forgets the transaction of a producer; what of it is still the last word, in the order of the log."""
        places = self._open.pop(producer_id, {})
        winners = [(record, offset) for record, offset in places.values() if record is not None]
        return sorted(winners, key=lambda winner: winner[1])


def _place_of(key: object, offset: Offset) -> Place:
    if isinstance(key, LegacyOffsetCommitKey | OffsetCommitKey):
        return (key.group, key.topic, key.partition)
    return ("", "", offset)  # no other kind of record is ever written in a transaction; each would be on its own
