"""A history that is judged while it is made and then forgotten, so that it may go on for hours.

It stands in for `History` with the writers and readers of `tests.faults.cluster`: they append sends and reads, and are
told nothing. Of every producer and partition each reader must see the numbers one by one. A number that it misses is
lost if it was acknowledged; a number that comes at a new offset after a higher one was written twice or out of order.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.faults.cluster.history import Outcome, Read, Send

REMEMBERED = 20_000
"""So many values are kept for comparing what readers saw at one offset."""
WORDS_MAX = 50

Lane = tuple[str, int]
"""A producer and a partition."""


class _Appended:
    """A list in the eyes of whoever appends to it."""

    def __init__(self, take: object) -> None:
        self.append = take


class Ledger:
    """`wrong` says what is wrong so far. `unordered` are producers that promise neither order nor uniqueness."""

    def __init__(self, unordered: Iterable[str] = ()) -> None:
        self.unordered = frozenset(unordered)
        self.sends, self.reads = _Appended(self._sent), _Appended(self._read)
        self.wrong: list[str] = []
        self.acknowledged: Counter[Lane] = Counter()
        self.read_by: Counter[str] = Counter()
        self._last_acknowledged: dict[Lane, int] = {}
        self._open: dict[Lane, set[int]] = {}
        self._missed: dict[tuple[str, Lane], set[int]] = {}
        self._next_number: dict[tuple[str, Lane], int] = {}
        self._next_offset: dict[tuple[str, int], int] = {}
        self._values: OrderedDict[tuple[int, int], str] = OrderedDict()
        self._lock = threading.Lock()

    def save(self, path: Path) -> None:
        path.write_text("\n".join(self.wrong) + "\n")

    def _sent(self, send: Send) -> None:
        lane = (send.producer, send.partition)
        with self._lock:
            if send.outcome is Outcome.ACKED:
                self.acknowledged[lane] += 1
                self._last_acknowledged[lane] = max(self._last_acknowledged.get(lane, -1), send.number)
            else:
                # It may be there or not, and nobody may ask for it.
                self._open.setdefault(lane, set()).add(send.number)

    def _read(self, read: Read) -> None:
        producer, _, number = read.value.rpartition(":")
        with self._lock:
            self.read_by[read.consumer] += 1
            self._compare(read)
            if read.offset < self._next_offset.get((read.consumer, read.partition), 0):
                return  # after a rebalance a group reads again what was not committed
            self._next_offset[read.consumer, read.partition] = read.offset + 1
            self._follow(read.consumer, (producer, read.partition), int(number), read.offset)

    def _compare(self, read: Read) -> None:
        place = (read.partition, read.offset)
        known = self._values.setdefault(place, read.value)
        if known != read.value:
            self._tell(f"offset {read.offset} of partition {read.partition} has {known} and {read.value}")
        while len(self._values) > REMEMBERED:
            self._values.popitem(last=False)

    def _follow(self, consumer: str, lane: Lane, number: int, offset: int) -> None:
        due = self._next_number.get((consumer, lane), 0)
        self._next_number[consumer, lane] = max(due, number + 1)
        if number < due:
            missed = self._missed.get((consumer, lane), set())
            if lane[0] not in self.unordered and number not in missed:
                self._tell(f"{consumer} got {lane[0]}:{number} of partition {lane[1]} again, at offset {offset}")
            elif lane[0] not in self.unordered:
                self._tell(f"{consumer} got {lane[0]}:{number} of partition {lane[1]} late, at offset {offset}")
            missed.discard(number)
        elif number > due:
            self._missed.setdefault((consumer, lane), set()).update(range(due, number))

    def _tell(self, words: str) -> None:
        if len(self.wrong) < WORDS_MAX:
            self.wrong.append(words)

    def caught_up(self, consumers: Sequence[str]) -> bool:
        """Whether all of these have read the last that every producer was acknowledged."""
        with self._lock:
            return all(
                self._next_number.get((consumer, lane), 0) > last
                for consumer in consumers
                for lane, last in self._last_acknowledged.items()
            )

    def verdict(self, consumers: Sequence[str]) -> list[str]:
        """All that is wrong in the end: what was found on the way, and what was acknowledged and never read."""
        with self._lock:
            found = list(self.wrong)
            for (consumer, lane), numbers in sorted(self._missed.items()):
                lost = sorted(numbers - self._open.get(lane, set()))
                if lost:
                    words = f"{len(lost)} values of {lane[0]}, such as {lost[:5]}"
                    found.append(f"{consumer} never got {words} in partition {lane[1]}")
            for consumer in consumers:
                for lane, last in sorted(self._last_acknowledged.items()):
                    if self._next_number.get((consumer, lane), 0) <= last:
                        found.append(f"{consumer} never got {lane[0]}:{last} in partition {lane[1]}")
        return found
