"""Records that say who wrote them and which they are, and the course of a partition as a reader must see it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.bench.raw import payload

HEADER = struct.Struct(">IQ")
"""The writer's number, and how many records it wrote to this partition before."""

_FIELDS = np.dtype([("writer", ">u4"), ("sequence", ">u8")])
_FILLERS = 256

Numbers = Any
"""An array of `writer` and `sequence`."""


def fillers(record_bytes: int) -> Sequence[bytes]:
    """What stands behind the header: text like that of logs, different from one record to the next."""
    return [payload(record_bytes - HEADER.size, seed) for seed in range(_FILLERS)]


def values(writer: int, first: int, count: int, behind: Sequence[bytes]) -> list[bytes]:
    """Records of a writer from a number on."""
    pack = HEADER.pack
    return [pack(writer, number) + behind[number % _FILLERS] for number in range(first, first + count)]


def numbers_of(records: Sequence[bytes]) -> Numbers:
    """What records say of themselves."""
    return np.frombuffer(b"".join([record[: HEADER.size] for record in records]), _FIELDS)


def numbers_in(data: Any, record_bytes: int) -> Numbers:
    """The same of records of one size that lie one after the other."""
    table = np.frombuffer(data, np.uint8).reshape(-1, record_bytes)
    return np.ascontiguousarray(table[:, : HEADER.size]).view(_FIELDS).reshape(-1)


class Course:
    """One partition as a group reads it: offsets without a gap, and every writer's numbers one by one.

    Offsets that were seen before are looked at no more: after a rebalance a group reads again what was not committed.
    """

    __slots__ = ("again", "next_numbers", "next_offset")

    def __init__(self) -> None:
        self.next_offset = 0
        self.next_numbers: dict[int, int] = {}
        self.again = 0

    def take(self, offsets: Any, numbers: Numbers) -> list[str]:
        """Takes records that came together, in order; returns what is wrong with them, in words."""
        seen = int(np.searchsorted(offsets, self.next_offset))
        self.again += seen
        offsets, numbers = offsets[seen:], numbers[seen:]
        if not len(offsets):
            return []
        wrong = []
        if int(offsets[0]) != self.next_offset:
            wrong.append(f"offsets {self.next_offset} to {int(offsets[0]) - 1} were not given")
        if int(offsets[-1]) - int(offsets[0]) + 1 != len(offsets) or (np.diff(offsets) != 1).any():
            wrong.append(f"offsets from {int(offsets[0])} to {int(offsets[-1])} have gaps")
        self.next_offset = int(offsets[-1]) + 1
        for writer in np.unique(numbers["writer"]).tolist():
            own = numbers["sequence"][numbers["writer"] == writer].astype(np.int64)
            wrong += self._follow(writer, own)
        return wrong

    def _follow(self, writer: int, own: Any) -> list[str]:
        due = self.next_numbers.get(writer, 0)
        self.next_numbers[writer] = int(own[-1]) + 1
        steps = np.diff(own, prepend=due - 1)
        odd = np.flatnonzero(steps != 1)
        if not len(odd):
            return []
        at = int(odd[0])
        before = due - 1 if at == 0 else int(own[at - 1])
        return [f"writer {writer}: {int(own[at])} comes after {before}, and {len(odd) - 1} more breaks"]
