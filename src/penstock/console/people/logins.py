"""A login becomes a delegation token of whoever logged in (KIP-48), and is forgotten.

All clusters are asked at once, and a person is in those that take the login. One that is away shuts nobody out of the
others. A token that comes to nothing is ended: brokers keep every token in memory until it ends.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.admin import Admin, DelegationToken
from penstock.client.errors import AuthenticationFailed, ClientError, NotTrusted, TimedOutWaiting
from penstock.console.failures import Declined, declined
from penstock.console.messages.thread import ReadingThread
from penstock.console.people.acting import PATIENCE, Acting, as_owner_of, as_who_has, with_login
from penstock.console.people.proxies import refuse_super_user
from penstock.console.people.seeing import Eyes
from penstock.console.people.sessions import LASTS_S, LoggedIn, expire
from penstock.model.errors import DELEGATION_TOKEN_AUTH_DISABLED, PenstockError

WITHIN_S: Final = 15.0
OTHERS_WITHIN_S: Final = 5.0
"""Once one cluster has answered, the others have so long."""
TEXT_MAX: Final = 1_024
_WRONG: Final = "the cluster does not take this user and password"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One cluster takes a login: who that is there, and what clients log in with from now on."""

    principal: str
    login: Mapping[str, Any]
    token: DelegationToken | None
    """One that was made for this, and has to be ended."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """The clusters that took a login, in their order, and those that could not be asked."""

    arrivals: Mapping[str, Arrival]
    away: frozenset[str] = frozenset()


Arrive = Callable[[Acting], Awaitable[Arrival]]
"""Given the console's own clients of a cluster."""


class Logins:
    """Every way in, to all clusters."""

    def __init__(self, own: Mapping[str, Acting], thread: ReadingThread) -> None:
        self._own, self._thread = own, thread
        self._late: set[asyncio.Task[Any]] = set()

    async def by_password(self, user: str, password: str, lasts_s: float = LASTS_S) -> LoggedIn:
        """A user of the cluster."""
        if not 0 < len(user) <= TEXT_MAX or not 0 < len(password) <= TEXT_MAX:
            raise Declined(401, "wrong_login", _WRONG)
        return await self._session({"username": user, "password": password}, lasts_s)

    async def by_bearer(self, token: str, lasts_s: float = LASTS_S) -> LoggedIn:
        """The owner of an access token, whom brokers take by OAUTHBEARER: they check it, and say who that is."""
        return await self._session({"token_provider": lambda: token}, lasts_s)

    async def by_delegation(self, token_id: str, hmac: str, lasts_s: float) -> LoggedIn:
        """The owner of a delegation token, which stays as it is: it was made elsewhere."""
        try:
            login = as_who_has(token_id, hmac)
        except ValueError as wrong:
            raise Declined(401, "wrong_login", str(wrong)) from None

        async def arrive(console: Acting) -> Arrival:
            try:
                async with Admin(**{**PATIENCE, **with_login(console.address.admin, login)}) as admin:
                    await admin.groups()  # which everybody may ask, and is told their own
            except AuthenticationFailed as failure:
                raise _not_taken(failure) from None
            # Over a connection that a token logged in, brokers tell nothing of tokens: the console asks whose it is.
            known = [token for token in await console.admin.describe_tokens() if token.token_id == token_id]
            if not known:
                raise Declined(
                    403,
                    "forbidden",
                    "the cluster takes this token, and does not tell the console whose it is",
                    "an ACL can allow the console DESCRIBE_TOKENS on its owner",
                )
            return Arrival(known[0].owner, login, None)

        return self.made(await self.arrive(self._own, arrive), lasts_s)

    async def by_name(self, principal: str, clusters: Iterable[str] | None = None) -> Arrived:
        """Somebody whom a proxy names: the console asks for a token of theirs, and takes none of a super user."""

        async def arrive(console: Acting) -> Arrival:
            arrival = await make_token(console.admin, console, LASTS_S, principal)
            try:
                await refuse_super_user(console.address, principal, arrival.login)
            except BaseException:
                await self._take_back(console, arrival)
                raise
            return arrival

        asked = self._own if clusters is None else {name: self._own[name] for name in clusters}
        return await self.arrive(asked, arrive)

    async def arrive(self, clusters: Mapping[str, Acting], arrive: Arrive) -> Arrived:
        """Who takes it. Declined when nobody does, by what is worth most to know."""
        tasks = {name: asyncio.ensure_future(arrive(own)) for name, own in clusters.items()}
        await _settled(tasks.values())
        arrivals: dict[str, Arrival] = {}
        failures: dict[str, Declined] = {}
        for name, task in tasks.items():
            if not task.done():
                self._end_when_late(task, clusters[name])
                failures[name] = declined(TimedOutWaiting("the cluster did not answer in time"))
            elif (failure := task.exception()) is None:
                arrivals[name] = task.result()
            elif isinstance(failure, PenstockError):
                failures[name] = declined(failure)
            else:
                raise failure
        if not arrivals:
            raise _refusal(failures)
        return Arrived(arrivals, _away(failures))

    def join(self, session: LoggedIn, arrived: Arrived) -> None:
        """Clusters that were away when a session began, or when it was tried last."""
        for name, arrival in arrived.arrivals.items():
            acting = Acting(self._own[name].address, arrival.login)
            session.acting[name] = acting
            session.eyes[name] = Eyes(acting.admin_keywords, self._thread)
            if arrival.token is not None:
                session.tokens[name] = arrival.token
        session.away = arrived.away

    async def _session(self, login: Mapping[str, Any], lasts_s: float) -> LoggedIn:
        async def arrive(console: Acting) -> Arrival:
            async with Admin(**{**PATIENCE, **with_login(console.address.admin, login)}) as admin:
                return await make_token(admin, console, lasts_s)

        return self.made(await self.arrive(self._own, arrive), lasts_s)

    def made(self, arrived: Arrived, lasts_s: float = LASTS_S) -> LoggedIn:
        """A session of somebody who arrived somewhere."""
        now = time.monotonic()
        principal = next(iter(arrived.arrivals.values())).principal
        session = LoggedIn(principal, secrets.token_hex(8), {}, {}, {}, now, now, lasts_s)
        self.join(session, arrived)
        return session

    def _end_when_late(self, task: asyncio.Future[Arrival], console: Acting) -> None:
        async def end() -> None:
            try:
                arrival = await task
            except PenstockError:
                return
            await self._take_back(console, arrival)

        ending = asyncio.create_task(end())
        self._late.add(ending)
        ending.add_done_callback(self._late.discard)

    async def _take_back(self, console: Acting, arrival: Arrival) -> None:
        if arrival.token is None:
            return
        try:
            await expire(console, arrival.token)
        except ClientError:
            return  # it ends by itself; whoever it would have let in never had it


async def make_token(admin: Admin, console: Acting, lasts_s: float, owner: str | None = None) -> Arrival:
    """A token that the console may end: by the token itself nobody can. `owner` is named by the console itself."""
    try:
        renewer = await console.principal()
        lasts_ms = round(lasts_s * 1_000)
        token = await admin.create_token(owner=owner, renewers=[renewer] if renewer else [], max_lifetime_ms=lasts_ms)
    except AuthenticationFailed as failure:
        if owner is None:
            raise _not_taken(failure) from None
        raise Declined(503, "own_login", f"the cluster does not take the console's own login: {failure}") from None
    except ClientError as failure:
        if failure.error is DELEGATION_TOKEN_AUTH_DISABLED:
            raise Declined(
                503,
                "no_tokens",
                "the cluster gives no delegation tokens, and the console keeps no passwords",
                "set delegation.token.secret.key on all nodes, alike",
            ) from None
        raise
    return Arrival(token.owner, as_owner_of(token), token)


async def _settled(tasks: Iterable[asyncio.Future[Arrival]]) -> None:
    """Until all have ended, or their time is over."""
    pending, now = set(tasks), time.monotonic
    until = now() + WITHIN_S
    while pending:
        done, pending = await asyncio.wait(pending, timeout=max(until - now(), 0), return_when=asyncio.FIRST_COMPLETED)
        if not done:
            return
        until = min(until, now() + OTHERS_WITHIN_S)


def _not_taken(failure: AuthenticationFailed) -> PenstockError:
    """Whom one cannot trust has refused nobody."""
    return failure if isinstance(failure, NotTrusted) else Declined(401, "wrong_login", _WRONG)


def _away(failures: Mapping[str, Declined]) -> frozenset[str]:
    return frozenset(name for name, why in failures.items() if why.status >= 500)


def _refusal(failures: Mapping[str, Declined]) -> Declined:
    """A wrong password before what was wrong with a cluster; then who could not be asked is told too."""
    why, away = min(failures.values(), key=lambda each: each.status), sorted(_away(failures))
    if why.status >= 500 or not away:
        return why
    message = f"{why.message}; not to be asked were {', '.join(away)}"
    return Declined(why.status, why.code, message, why.attempt, **why.params)
