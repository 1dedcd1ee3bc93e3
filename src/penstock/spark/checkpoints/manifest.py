"""What a copy of a checkpoint consists of, and what of earlier ones may go. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from penstock.spark.errors import SparkRoomError

MANIFESTS: Final = "manifests"
PACKS: Final = "packs"
FORMAT: Final = 1
KEPT: Final = 3
"""So many copies stay, so that somebody who reads one has it until the end."""
PACK_BYTES: Final = 8 << 20
"""Small files go together: a batch costs two requests, however many partitions its state has."""


class Unreadable(SparkRoomError):
    """A manifest is none, or of a later release."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Where the bytes of one file are."""

    pack: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One copy of a checkpoint. `put` is a name of its own for each attempt: it tells a lost answer from a rival."""

    number: int
    holder: str
    host: str
    time_ms: int
    put: str
    files: Mapping[str, Stored] = field(default_factory=dict)

    @property
    def packs(self) -> frozenset[str]:
        return frozenset(each.pack for each in self.files.values())

    def to_json(self) -> str:
        files = {name: [each.pack, each.start, each.size] for name, each in self.files.items()}
        told = {"format": FORMAT, "number": self.number, "holder": self.holder, "host": self.host}
        return json.dumps({**told, "time_ms": self.time_ms, "put": self.put, "files": files})

    @classmethod
    def of_json(cls, text: str | bytes, where: str) -> Self:
        try:
            told: dict[str, Any] = json.loads(text)
            if told["format"] != FORMAT:
                raise Unreadable(f"{where} is of format {told['format']}, and this release knows {FORMAT}: upgrade it")
            files = {
                name: Stored(str(pack), int(start), int(size)) for name, (pack, start, size) in told["files"].items()
            }
            return cls(
                int(told["number"]), told["holder"], told["host"], int(told["time_ms"]), told["put"], files
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise Unreadable(f"{where} is no manifest of a checkpoint: {wrong!r}") from wrong


def manifest_name(number: int) -> str:
    return f"{MANIFESTS}/{number:020d}.json"


def pack_name(number: int, tail: str) -> str:
    """The number is that of the copy it was made for: whoever sweeps leaves packs of later copies alone."""
    return f"{PACKS}/{number:020d}-{tail}"


def number_of(name: str) -> int:
    """Of a manifest or a pack; -1 for what is neither."""
    digits = name.rpartition("/")[2][:20]
    return int(digits) if digits.isdigit() and len(digits) == 20 else -1


def newest(names: Iterable[str]) -> int:
    """The number of the last copy; 0 when there is none."""
    return max((number_of(name) for name in names), default=0)


def in_packs(sizes: Mapping[str, int]) -> list[list[str]]:
    """Files together up to a size, in an order of their own; a large one alone."""
    packs: list[list[str]] = []
    filled = PACK_BYTES
    for name in sorted(sizes):
        if filled + sizes[name] > PACK_BYTES:
            packs.append([])
            filled = 0
        packs[-1].append(name)
        filled += sizes[name]
    return packs


def garbage(recent: Mapping[int, Collection[str]], number: int) -> tuple[list[int], list[str]]:
    """Copies that may go now that `number` is there, and the packs that only they named. `recent` are the packs of
    each copy that may still be there."""
    going = sorted(each for each in recent if each <= number - KEPT)
    kept = {pack for each, packs in recent.items() if each > number - KEPT for pack in packs}
    return going, sorted({pack for each in going for pack in recent[each]} - kept)


def strays(names: Iterable[str], number: int, named: Collection[str]) -> list[str]:
    """Packs of copies that never came to be. Those of later numbers belong to somebody who is at work."""
    return sorted(name for name in names if name not in named and -1 < number_of(name) <= number)
