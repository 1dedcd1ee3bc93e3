"""How long a failed login waits before it is told: longer with every failure of the same name from the same address.

The table is bounded and forgets; whoever is forgotten starts again at `connection.failed.authentication.delay.ms`.
Guessing is slowed where it costs the guesser, not the owner of the name: logins from elsewhere are not delayed.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

NAME_CHARACTERS_MAX: Final = 64
"""Names are chosen by strangers: longer ones share a place with what they begin with."""


@dataclass(frozen=True, slots=True)
class _Failures:
    count: int
    last_ms: float


class FailureDelays:
    """`now` is monotonic time in milliseconds."""

    def __init__(
        self, first_ms: int = 100, longest_ms: int = 5_000, forget_after_ms: int = 600_000, entries_max: int = 10_000
    ) -> None:
        self._first_ms, self._longest_ms = first_ms, longest_ms
        self._forget_after_ms, self._entries_max = forget_after_ms, entries_max
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()  # the longest untouched first

    def __len__(self) -> int:
        return len(self._failures)

    def failed(self, address: str, name: str, now: float) -> int:
        """How many milliseconds this failure is delayed."""
        self._forget(now)
        key = _key(address, name)
        known = self._failures.pop(key, None)
        count = 1 if known is None else known.count + 1
        self._failures[key] = _Failures(count, now)
        if len(self._failures) > self._entries_max:
            self._failures.popitem(last=False)
        # The second failure is a slip like the first; from then on the delay doubles.
        return min(self._first_ms << min(max(count - 2, 0), 20), self._longest_ms)

    def succeeded(self, address: str, name: str) -> None:
        self._failures.pop(_key(address, name), None)

    def _forget(self, now: float) -> None:
        while self._failures:
            oldest = next(iter(self._failures.values()))
            if now - oldest.last_ms < self._forget_after_ms:
                return
            self._failures.popitem(last=False)


def _key(address: str, name: str) -> tuple[str, str]:
    return address, name[:NAME_CHARACTERS_MAX]
