"""Requests that come again under the same Idempotency-Key: they are carried out once, and answered alike for 10 min.

Kept in this process alone: another console, or this one after a restart, knows nothing of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from penstock.console.failures import Declined, bad_request

KEPT_S: Final = 600.0
KEPT_MAX: Final = 10_000
KEPT_OF_ONE_MAX: Final = 2_000
KEPT_BYTES_MAX: Final = 16 << 20
KEY_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer. `kept`: something was done, so it must not be done again."""

    status: int
    body: bytes
    kept: bool


@dataclass(slots=True)
class _Request:
    person: str
    digest: bytes
    began: float
    outcome: asyncio.Future[Outcome]
    size: int = 0


class Repeats:
    """By person and key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._requests: OrderedDict[tuple[str, str], _Request] = OrderedDict()
        self._of_one: Counter[str] = Counter()
        self._bytes = 0

    async def once(
        self, person: str, key: str, what: bytes, carry_out: Callable[[], Awaitable[Outcome]]
    ) -> tuple[Outcome, bool]:
        """The outcome, and whether it is that of an earlier request. `what` is all that was asked for."""
        if not key or len(key) > KEY_MAX or not key.isascii() or not key.isprintable():
            raise bad_request(f"Idempotency-Key: 1 to {KEY_MAX} printable ASCII characters were expected")
        self._forget_old()
        digest, known = hashlib.sha256(what).digest(), self._requests.get((person, key))
        if known is not None:
            if known.digest != digest:
                raise Declined(422, "key_reused", "this Idempotency-Key came with another request before")
            return await asyncio.shield(known.outcome), True
        self._check_room(person)
        request = _Request(person, digest, self._clock(), asyncio.get_running_loop().create_future())
        self._requests[person, key] = request
        self._of_one[person] += 1
        try:
            outcome = await carry_out()
        except BaseException as failure:
            self._forget(person, key)
            request.outcome.set_exception(failure if isinstance(failure, Exception) else _broken_off())
            request.outcome.exception()  # whoever waits with us hears of it; when nobody does, that is no mistake
            raise
        request.outcome.set_result(outcome)
        request.size = len(outcome.body)
        self._bytes += request.size
        if not outcome.kept:
            self._forget(person, key)
        return outcome, False

    def _check_room(self, person: str) -> None:
        full = len(self._requests) >= KEPT_MAX or self._bytes >= KEPT_BYTES_MAX
        if full or self._of_one[person] >= KEPT_OF_ONE_MAX:
            message = "too many requests with an Idempotency-Key are remembered"
            raise Declined(429, "too_many", message, "send more records in one request", retry_after_s=60)

    def _forget_old(self) -> None:
        now = self._clock()
        while self._requests:
            (person, key), oldest = next(iter(self._requests.items()))
            if now - oldest.began < KEPT_S or not oldest.outcome.done():
                return
            self._forget(person, key)

    def _forget(self, person: str, key: str) -> None:
        request = self._requests.pop((person, key))
        self._bytes -= request.size
        self._of_one[person] -= 1
        if not self._of_one[person]:
            del self._of_one[person]


def _broken_off() -> Declined:
    return Declined(503, "failed", "the request before this one broke off", "look at the topic before it is repeated")
