"""A login becomes a delegation token of whoever logged in (KIP-48), and is forgotten."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, Final

from penstock.client.admin import Admin, DelegationToken
from penstock.client.errors import AuthenticationFailed, ClientError
from penstock.console.failures import Declined
from penstock.console.messages.thread import ReadingThread
from penstock.console.people.acting import PATIENCE, Acting, as_owner_of, with_login
from penstock.console.people.seeing import Eyes
from penstock.console.people.sessions import LASTS_S, LoggedIn
from penstock.console.settings import ClusterAddress
from penstock.model.errors import DELEGATION_TOKEN_AUTH_DISABLED

TRIES_MAX: Final = 5
TRIES_S: Final = 60.0
WATCHED_MAX: Final = 10_000
_TEXT_MAX: Final = 1_024


class Tries:
    """Who tries to log in how often: five times a minute by address, and by the name that is tried."""

    def __init__(self) -> None:
        self._tries: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, *who: str) -> None:
        """Counts a try; Declined when there were too many."""
        now = time.monotonic()
        for each in who:
            tries = self._tries.setdefault(each, deque())
            self._tries.move_to_end(each)
            while tries and now - tries[0] > TRIES_S:
                tries.popleft()
            if len(tries) >= TRIES_MAX:
                wait_s = round(TRIES_S - (now - tries[0])) + 1
                message = f"{TRIES_MAX} logins in a minute are enough"
                raise Declined(429, "too_many", message, f"try again in {wait_s} s", retry_after_s=wait_s)
            tries.append(now)
        while len(self._tries) > WATCHED_MAX:
            self._tries.popitem(last=False)

    def forget(self, *who: str) -> None:
        """Whoever came in has not guessed."""
        for each in who:
            self._tries.pop(each, None)


async def login_by_password(own: Mapping[str, Acting], user: str, password: str, thread: ReadingThread) -> LoggedIn:
    """A user of the cluster. Of several clusters those are shown that take the same login."""
    if not 0 < len(user) <= _TEXT_MAX or not 0 < len(password) <= _TEXT_MAX:
        raise Declined(401, "wrong_login", "the cluster does not take this user and password")
    return await _logged_in(own, {"username": user, "password": password}, thread)


async def login_by_bearer(own: Mapping[str, Acting], token: str, thread: ReadingThread) -> LoggedIn:
    """The owner of an access token, whom brokers take by OAUTHBEARER: they check it, and say who that is."""
    return await _logged_in(own, {"token_provider": lambda: token}, thread)


async def _logged_in(own: Mapping[str, Acting], login: Mapping[str, Any], thread: ReadingThread) -> LoggedIn:
    tokens: dict[str, DelegationToken] = {}
    failure: Declined | None = None
    for name, console in own.items():
        try:
            async with Admin(**{**PATIENCE, **with_login(console.address.admin, login)}) as admin:
                tokens[name] = await make_token(admin, console)
        except Declined as why:
            failure = failure or why
    if not tokens:
        assert failure is not None, "there is a cluster"
        raise failure
    return session_of({name: own[name].address for name in tokens}, tokens, thread)


async def make_token(admin: Admin, console: Acting, owner: str | None = None) -> DelegationToken:
    """A token that the console may end: by the token itself nobody can."""
    try:
        renewer = await console.principal()
        lasts_ms = round(LASTS_S * 1_000)
        return await admin.create_token(owner=owner, renewers=[renewer] if renewer else [], max_lifetime_ms=lasts_ms)
    except AuthenticationFailed:
        raise Declined(401, "wrong_login", "the cluster does not take this user and password") from None
    except ClientError as failure:
        if failure.error is DELEGATION_TOKEN_AUTH_DISABLED:
            raise Declined(
                503,
                "no_tokens",
                "the cluster gives no delegation tokens, and the console keeps no passwords",
                "set delegation.token.secret.key on all nodes, alike",
            ) from None
        raise


def session_of(
    addresses: Mapping[str, ClusterAddress], tokens: Mapping[str, DelegationToken], thread: ReadingThread
) -> LoggedIn:
    acting = {name: Acting(address, as_owner_of(tokens[name])) for name, address in addresses.items()}
    eyes = {name: Eyes(each.admin_keywords, thread) for name, each in acting.items()}
    now = time.monotonic()
    principal = next(iter(tokens.values())).owner
    return LoggedIn(principal, secrets.token_hex(8), acting, eyes, dict(tokens), now, now)
