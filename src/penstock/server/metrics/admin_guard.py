"""Who may read the admin port, where a login is set: wrong ones are told so slowly, and not too many wait at once.

| who comes | with a login set |
|---|---|
| without one, for `/healthz` | yes or no, without reasons |
| without one, for the rest | 401, with what is offered |
| with the right one | as if none were set |
| with a wrong one | 401 after a pause that grows with every failure |
| with any, from an address of which failures wait, when many do | 429, and nobody looks whether it is right |
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from penstock.security.http_login import BASIC, BEARER, Attempt, HttpLogins
from penstock.server.metrics.admin_pages import Page, words

if TYPE_CHECKING:
    from penstock.security.failures import FailureDelays

FAILURES_WAITING_MAX: Final = 16
"""Half of the connections that the port takes: the others are for those who know the password."""
DELAY_MS_MAX: Final = 2_000


class AdminGuard:
    """Belongs to the loop of the port."""

    def __init__(
        self,
        logins: HttpLogins,
        delays: FailureDelays,
        now_ms: Callable[[], float],
        on_failure: Callable[[str, Attempt], None],
    ) -> None:
        """`on_failure` is told the address and what was tried."""
        self._logins, self._delays, self._now_ms, self._on_failure = logins, delays, now_ms, on_failure
        self._waiting: Counter[str] = Counter()
        self.failed = dict.fromkeys((BASIC, BEARER), 0)

    def refusal(self, authorization: str | None, host: str) -> Page | Awaitable[Page] | None:
        """What to answer instead of the page; None for one who may have it."""
        if authorization is None:
            return self._challenge("log in first")
        if self._waiting[host] and self._waiting.total() >= FAILURES_WAITING_MAX:
            return words(429, "too many logins failed")
        attempt = self._logins.judge(authorization)
        if attempt.known:
            self._delays.succeeded(host, attempt.name)
            return None
        if attempt.mechanism in self.failed:
            self.failed[attempt.mechanism] += 1
        self._on_failure(host, attempt)
        return self._refused(host, self._delays.failed(host, attempt.name, self._now_ms()))

    async def _refused(self, host: str, delay_ms: float) -> Page:
        self._waiting[host] += 1
        try:
            await asyncio.sleep(delay_ms / 1_000)
        finally:
            self._waiting[host] -= 1
            if not self._waiting[host]:
                del self._waiting[host]
        return self._challenge("wrong login")

    def _challenge(self, why: str) -> Page:
        headers = tuple(("WWW-Authenticate", value) for value in self._logins.challenges())
        return words(401, why)._replace(headers=headers)
