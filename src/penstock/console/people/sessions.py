"""Who is logged in: a random name in a cookie, a delegation token on this side, and an end to both."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.client.admin import DelegationToken
from penstock.client.errors import ClientError
from penstock.console.failures import Declined
from penstock.console.people.acting import Acting
from penstock.console.people.seeing import Eyes

IDLE_S: Final = 1_800.0
LASTS_S: Final = 43_200.0
SESSIONS_MAX: Final = 1_000
OF_ONE_MAX: Final = 20
"""One person has so many browsers; the one that was idle longest makes room."""


@dataclass
class LoggedIn:
    """One person in one browser. `key` stands for the session in this process, and is no secret."""

    principal: str
    key: str
    acting: Mapping[str, Acting]
    eyes: Mapping[str, Eyes]
    tokens: Mapping[str, DelegationToken]
    began: float
    used: float = field(default=0.0)

    @property
    def ends_in_s(self) -> float:
        now = time.monotonic()
        return max(min(self.used + IDLE_S, self.began + LASTS_S) - now, 0.0)


class Sessions:
    """All who are logged in. `left` hears of each that is not any more."""

    def __init__(self, left: Callable[[LoggedIn], None], own: Mapping[str, Acting]) -> None:
        """`own` acts as the console itself, which may end the tokens that it renews: nobody can end its own with it."""
        self._left, self._own = left, own
        self._open: dict[str, LoggedIn] = {}
        """By the hash of what the cookie says: whoever reads this memory cannot make a cookie of it."""

    async def begin(self, session: LoggedIn) -> str:
        """What the cookie is to say."""
        await self.sweep()
        mine = sorted((each for each in self._open.values() if each.principal == session.principal), key=_used)
        for old in mine[: max(len(mine) - OF_ONE_MAX + 1, 0)]:
            await self.end(old)
        if len(self._open) >= SESSIONS_MAX:
            raise Declined(429, "too_many", f"{SESSIONS_MAX} people are logged in", retry_after_s=60)
        name = secrets.token_urlsafe(32)
        self._open[_hashed(name)] = session
        return name

    def find(self, name: str | None) -> LoggedIn | None:
        """Who is logged in under a cookie's name, if it has not ended."""
        found = self._open.get(_hashed(name)) if name else None
        if found is None or found.ends_in_s <= 0:
            return None
        found.used = time.monotonic()
        return found

    def by_key(self, key: str) -> LoggedIn | None:
        return next((each for each in self._open.values() if each.key == key and each.ends_in_s > 0), None)

    async def end(self, session: LoggedIn) -> None:
        """Logs out: streams end, clients hang up, and the token is made to end, as far as brokers can be reached."""
        self._open = {name: each for name, each in self._open.items() if each is not session}
        self._left(session)
        for eyes in session.eyes.values():
            await eyes.close()
        for cluster, token in session.tokens.items():
            with contextlib.suppress(ClientError):
                await self._own[cluster].admin.expire_token(token.hmac)
        for acting in session.acting.values():
            await acting.close()

    async def sweep(self) -> None:
        """Ends what nobody used for long, or what has lasted long enough."""
        for session in [each for each in self._open.values() if each.ends_in_s <= 0]:
            await self.end(session)

    async def close(self) -> None:
        for session in list(self._open.values()):
            await self.end(session)


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _used(session: LoggedIn) -> float:
    return session.used
