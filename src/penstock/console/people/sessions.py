"""Who is logged in: a random name in a cookie, a delegation token on this side, and an end to both."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.client.admin import DelegationToken
from penstock.console.failures import Declined
from penstock.console.people.acting import Acting
from penstock.console.people.seeing import Eyes

log = logging.getLogger(__name__)

IDLE_S: Final = 1_800.0
LASTS_S: Final = 43_200.0
SESSIONS_MAX: Final = 1_000
OF_ONE_MAX: Final = 20
"""One person has so many browsers; the one that was idle longest makes room."""
LOOK_EVERY_S: Final = 1.0
END_WITHIN_S: Final = 5.0
"""What brokers do not let go of in so long is left to end by itself: connections with the console, tokens in time."""


@dataclass
class LoggedIn:
    """One person in one browser or script. `key` stands for the session in this process, and is no secret."""

    principal: str
    key: str
    acting: dict[str, Acting]
    eyes: dict[str, Eyes]
    tokens: dict[str, DelegationToken]
    """Those that were made for it, and end with it."""
    began: float
    used: float = field(default=0.0)
    lasts_s: float = LASTS_S
    away: frozenset[str] = frozenset()
    """Clusters that could not be asked when it began."""

    @property
    def ends_in_s(self) -> float:
        now = time.monotonic()
        return max(min(self.used + IDLE_S, self.began + self.lasts_s) - now, 0.0)


class Sessions:
    """All who are logged in. `left` hears of each that is not any more."""

    def __init__(self, left: Callable[[LoggedIn], None], own: Mapping[str, Acting]) -> None:
        """`own` acts as the console itself, which may end the tokens that it renews: nobody can end its own with it."""
        self._left, self._own = left, own
        self._open: dict[str, LoggedIn] = {}
        """By the hash of what the cookie says: whoever reads this memory cannot make a cookie of it."""

    async def begin(self, session: LoggedIn) -> str:
        """What the cookie is to say. A session that is declined has ended."""
        await self.sweep()
        mine = sorted((each for each in self._open.values() if each.principal == session.principal), key=_used)
        await self._end_all(mine[: max(len(mine) - OF_ONE_MAX + 1, 0)])
        if len(self._open) >= SESSIONS_MAX:
            await self._finish(session)
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

    def is_open(self, name: str) -> bool:
        """As `find`, which counts as use."""
        found = self._open.get(_hashed(name))
        return found is not None and found.ends_in_s > 0

    def by_key(self, key: str) -> LoggedIn | None:
        return next((each for each in self._open.values() if each.key == key and each.ends_in_s > 0), None)

    async def end(self, session: LoggedIn) -> None:
        """Logs out: streams end, clients hang up, and the token is made to end, as far as brokers can be reached."""
        self._open = {name: each for name, each in self._open.items() if each is not session}
        self._left(session)
        await self._finish(session)

    async def sweep(self) -> None:
        """Ends what nobody used for long, or what has lasted long enough."""
        await self._end_all([each for each in self._open.values() if each.ends_in_s <= 0])

    async def watch(self) -> None:
        """Sweeps as long as the console runs: a stream that only listens ends with its login too."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.sweep()
            except Exception:
                log.exception("logins that are over were not all ended; it is tried again")

    async def close(self) -> None:
        await self._end_all(list(self._open.values()))

    async def _end_all(self, sessions: Iterable[LoggedIn]) -> None:
        await asyncio.gather(*map(self.end, sessions))

    async def _finish(self, session: LoggedIn) -> None:
        """All of it at once: a broker that says nothing holds up only what it is asked itself."""
        work = [asyncio.ensure_future(eyes.close()) for eyes in session.eyes.values()]
        work += [asyncio.ensure_future(expire(self._own[cluster], token)) for cluster, token in session.tokens.items()]
        work += [asyncio.ensure_future(acting.close()) for acting in session.acting.values()]
        if not work:
            return
        _, late = await asyncio.wait(work, timeout=END_WITHIN_S)
        for each in late:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def expire(own: Acting, token: DelegationToken) -> None:
    """Ends a token now, as the console, which renews it."""
    await own.admin.expire_token(token.hmac)


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _used(session: LoggedIn) -> float:
    return session.used
