"""Which letters of one place were sent: what the records of `__penstock_redrive` say. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.model.ids import TopicPartition
from penstock.spark.errors import SparkRoomError
from penstock.spark.values.letters import DeadLetter

LETTERS_MOST: Final = 2_000_000
"""Marks of a table that are held at once, some two hundred bytes each."""

Identity = tuple[int, int]
"""Offset and time, of a topic and partition: a topic that was made anew counts from 0 again."""


class TooManyMarks(SparkRoomError):
    """More letters of one table were sent than can be remembered."""


@dataclass(slots=True)
class Marks:
    """Those of the letters at `place`: `topic:NAME#ID`, or `table:PATH`."""

    place: str
    positions: dict[str, dict[int, int]] = field(default_factory=dict)
    """Of a topic of letters: origin → partition → the next offset to look at."""
    sent: dict[TopicPartition, set[Identity]] = field(default_factory=dict)
    """Of a table: the letters that came from that partition."""
    chunks: int = 0

    def take_in(self, key: bytes | None, value: bytes | None) -> None:
        """A record of the topic, in the order of its log."""
        if key is None or value is None:
            return
        place, kind, *rest = json.loads(key)
        if place != self.place:
            return
        told = json.loads(value)
        if kind == "read":
            self.positions[rest[0]] = {int(partition): offset for partition, offset in told.items()}
        elif kind == "sent":
            self.chunks = max(self.chunks, rest[0] + 1)
            for topic, partition, offset, time in told:
                self.sent.setdefault(TopicPartition(topic, partition), set()).add((offset, time))
            if sum(map(len, self.sent.values())) > LETTERS_MOST:
                raise TooManyMarks(
                    f"more than {LETTERS_MOST:,} letters of {self.place} were redriven, which is more than can be "
                    "remembered: move the letters that are left into another table, and name that in the file"
                )

    def position(self, origin: str, partition: int) -> int:
        return self.positions.get(origin, {}).get(partition, 0)

    def has(self, letter: DeadLetter) -> bool:
        found = self.sent.get(TopicPartition(letter.topic, letter.partition))
        return found is not None and identity_of(letter) in found

    def read_to(self, origins: Iterable[str], offsets: Mapping[int, int]) -> list[tuple[bytes, bytes]]:
        """The records that say so, of letters from each of `origins`; nothing of what was read before is unread."""
        found = []
        for origin in origins:
            known = self.positions.get(origin, {})
            moved = {**known, **{each: max(offset, known.get(each, 0)) for each, offset in offsets.items()}}
            if moved != known:
                found.append(_record([self.place, "read", origin], {str(each): at for each, at in moved.items()}))
        return found

    def were_sent(self, letters: Iterable[DeadLetter]) -> list[tuple[bytes, bytes]]:
        """The record that says so, which has a key of its own for ever."""
        told = [[each.topic, each.partition, *identity_of(each)] for each in letters]
        return [_record([self.place, "sent", self.chunks], told)] if told else []


def identity_of(letter: DeadLetter) -> Identity:
    return letter.offset, -1 if letter.timestamp is None else int(letter.timestamp.timestamp() * 1000)


def _record(key: list[Any], value: Any) -> tuple[bytes, bytes]:
    return json.dumps(key).encode(), json.dumps(value, separators=(",", ":")).encode()
