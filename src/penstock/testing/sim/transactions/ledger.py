"""What clients wrote in transactions, how they wanted each to end, and what they were told."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.testing.sim.history import Place


class Told(Enum):
    """What the client of a transaction knows of its end."""

    NOTHING = "nothing"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Attempt:
    """One transaction as its client sees it."""

    __slots__ = ("client", "commit_asked", "number", "told", "transactional_id", "values")

    def __init__(self, number: int, transactional_id: str, client: str) -> None:
        self.number, self.transactional_id, self.client = number, transactional_id, client
        self.commit_asked = False
        self.told = Told.NOTHING
        self.values: list[bytes] = []

    def __str__(self) -> str:
        return f"transaction {self.number} ({self.transactional_id}, {self.client})"


class Entry(NamedTuple):
    """A record of a transaction."""

    attempt: Attempt
    origin: Place | None
    """What it is a copy of."""


class Began(NamedTuple):
    """Somebody was given a producer id and an epoch."""

    at_s: float
    producer_id: int
    epoch: int


class Ledger:
    """All transactions of all clients. Every record has a value of its own."""

    def __init__(self, next_value: Callable[[], bytes]) -> None:
        self._next_value = next_value
        self.attempts: list[Attempt] = []
        self.entries: dict[bytes, Entry] = {}
        self.began: dict[str, list[Began]] = {}

    def begin(self, transactional_id: str, client: str) -> Attempt:
        attempt = Attempt(len(self.attempts) + 1, transactional_id, client)
        self.attempts.append(attempt)
        return attempt

    def write(self, attempt: Attempt, origin: Place | None = None) -> bytes:
        """The value of the next record."""
        value = self._next_value()
        attempt.values.append(value)
        self.entries[value] = Entry(attempt, origin)
        return value

    def initialised(self, transactional_id: str, producer_id: int, epoch: int, at_s: float) -> None:
        self.began.setdefault(transactional_id, []).append(Began(at_s, producer_id, epoch))
