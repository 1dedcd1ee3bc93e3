"""The buckets of a node: one for everybody who shares a limit, and never more than a bound of them.

Client ids are chosen by clients, so anybody could make a bucket a request. A bucket in which nothing counts any more is
as good as a new one and is forgotten; when the table is full of others, further client ids of a user share one bucket.
That slows down the user who brought it about and whoever of the others is new in that moment, instead of letting
anybody past a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from penstock.security.quotas.limits import Limit

BUCKETS_MAX: Final = 10_000
"""Buckets for client ids, of about a kilobyte each."""

_LOOKED_AT: Final = 2
"""How many old buckets are looked at when one is added: as long as they can go, the table shrinks while it is used."""


class Bucket(Protocol):
    """What a table can hold: `RateBucket`, `TokenBucket`."""

    limit: float
    kept: bool

    def charge(self, value: float, now_ms: float) -> int: ...
    def is_empty(self, now_ms: float) -> bool: ...


B = TypeVar("B", bound=Bucket)
K = TypeVar("K")

Key = tuple[str, str, str]
"""What is limited, of which user, of which client."""


class Buckets(Generic[B]):
    """Buckets by limit. Whoever holds one asks again when it is no longer `kept`."""

    __slots__ = ("_by_key", "_make", "_max", "_of_users", "_overflow")

    def __init__(self, make: Callable[[float, float], B], most: int = BUCKETS_MAX) -> None:
        """`make` gives a bucket for a limit, now."""
        self._make = make
        self._max = most
        self._by_key: dict[Key, B] = {}
        # Users have names that clients cannot choose.
        self._of_users: dict[Key, B] = {}
        # One for every limit that is set, for the client ids that found no place.
        self._overflow: dict[tuple[str, str, float], B] = {}

    def of(self, limit: Limit, now_ms: float) -> B:
        """The bucket of everybody whom this limit is for, with the limit as it is now."""
        key = (limit.key, limit.user, limit.client)
        table = self._by_key if limit.client else self._of_users
        found = table.get(key)
        if found is None:
            if limit.client and self._is_full(now_ms):
                return self._overflowing(limit, now_ms)
            found = table[key] = self._make(limit.value, now_ms)
        found.limit = limit.value
        return found

    def sweep(self, now_ms: float) -> None:
        """Forgets every bucket in which nothing counts any more. For a timer that seldom rings."""
        _sweep(self._by_key, now_ms)
        _sweep(self._of_users, now_ms)
        _sweep(self._overflow, now_ms)

    def __len__(self) -> int:
        return len(self._by_key) + len(self._of_users) + len(self._overflow)

    def items(self) -> Iterator[tuple[Key, B]]:
        """Every bucket that has somebody's name, for metrics."""
        yield from self._by_key.items()
        yield from self._of_users.items()

    def _overflowing(self, limit: Limit, now_ms: float) -> B:
        key = (limit.key, limit.user, limit.value)
        found = self._overflow.get(key)
        if found is None:
            found = self._overflow[key] = self._make(limit.value, now_ms)
        return found

    def _is_full(self, now_ms: float) -> bool:
        """Whether there is no place for a further client id, after a look at the oldest buckets."""
        table = self._by_key
        for _ in range(min(_LOOKED_AT, len(table))):
            key = next(iter(table))
            bucket = table.pop(key)
            if bucket.is_empty(now_ms):
                bucket.kept = False
            else:
                table[key] = bucket  # to the end: others are looked at next time
        return len(table) >= self._max


def _sweep(table: dict[K, B], now_ms: float) -> None:
    for key in [key for key, bucket in table.items() if bucket.is_empty(now_ms)]:
        table.pop(key).kept = False
