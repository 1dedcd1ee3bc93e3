"""What must be true of the records that came out: as many as went in, in order, without a gap, and unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from demo.orders import CUSTOMERS, number_of

PLANTS = ("lost", "doubled", "swapped", "altered")


class Read(NamedTuple):
    """One record as a consumer gave it."""

    partition: int
    offset: int
    customer: int
    value: bytes


class Verdict(NamedTuple):
    name: str
    words: str
    good: bool


class Tally:
    """Takes records one by one and remembers a few numbers about them."""

    def __init__(self) -> None:
        self.count = 0
        self.disorder = 0
        self.gaps = 0
        self._digests = [hashlib.blake2b(digest_size=8) for _ in range(CUSTOMERS)]
        self._last_numbers = [-1] * CUSTOMERS
        self._next_offsets: dict[int, int] = {}

    def sent(self, customer: int, value: bytes) -> None:
        self.count += 1
        self._digests[customer].update(value)

    def read(self, record: Read) -> None:
        partition, offset, customer, value = record
        self.gaps += offset != self._next_offsets.get(partition, 0)
        self._next_offsets[partition] = offset + 1
        number = number_of(value)
        self.disorder += number <= self._last_numbers[customer]
        self._last_numbers[customer] = number
        self.sent(customer, value)

    def checksum(self) -> str:
        """Equal for two tallies exactly when every customer has the same orders in the same order."""
        whole = hashlib.blake2b(digest_size=12)
        for digest in self._digests:
            whole.update(digest.digest())
        return whole.hexdigest()


def judge(sent: Tally, read: Tally) -> list[Verdict]:
    same = read.checksum() == sent.checksum()
    return [
        Verdict("count", f"{read.count:,} of {sent.count:,} records came back", read.count == sent.count),
        Verdict("order", _or("every customer's orders in the order they were sent", read.disorder), not read.disorder),
        Verdict("offsets", _or("no gap and no repetition in any partition", read.gaps), not read.gaps),
        Verdict("checksum", read.checksum() if same else f"{read.checksum()} is not {sent.checksum()}", same),
    ]


def _or(words: str, exceptions: int) -> str:
    return f"{words}, but for {exceptions:,}" if exceptions else words


def planted(fault: str | None, records: Iterable[Read], at: int) -> Iterator[Read]:
    """The records with one fault from position `at` on, to show that the checks would see it."""
    stream = iter(records)
    for position, record in enumerate(stream):
        if position != at or fault is None:
            yield record
        elif fault == "doubled":
            yield record
            yield record
        elif fault == "swapped":
            # The next order of the same customer comes first.
            behind = []
            for other in stream:
                if other.customer == record.customer:
                    yield other
                    break
                behind.append(other)
            yield record
            yield from behind
        elif fault == "altered":
            yield record._replace(value=record.value.replace(b'"amount": ', b'"amount": 1'))
        else:
            assert fault == "lost", f"there is no fault {fault!r}"
