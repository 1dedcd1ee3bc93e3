"""Where access tokens come from, and when the next one is asked for."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from penstock.model.secret import Secret
from penstock.security.exchange import Token
from penstock.security.jaas.entry import BadJaas
from penstock.security.oauth.messages import Malformed, parse_client_first
from penstock.security.oauth.renewal import NoToken, RenewalPolicy, access_token
from penstock.transport.bearer import (
    TRIES_MAX,
    BearerCredentials,
    BearerProperties,
    TokenEndpoint,
    TokenFile,
    TokenProvider,
    bearer_credentials,
)
from penstock.transport.login import BadLogin
from penstock.transport.web import Address
from tests.identity_provider import identity_provider
from tests.unit.security.oauth.issuing import token
from tests.unit.transport.pairs import on_loop

NOW_MS = 1_000_000.0
QUICK = RenewalPolicy(backoff_ms=1, backoff_max_ms=1)
JAAS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "


def lasting(seconds: float, name: str = "alice") -> str:
    now_s = time.time()
    return token("ES256", {"sub": name, "iat": now_s, "exp": now_s + seconds})


class Provider:
    """Gives what it is told to give, and counts."""

    def __init__(self, *answers: str | Exception) -> None:
        self._answers = list(answers)
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def sent(credentials: BearerCredentials, *, again: bool = False) -> str:
    step = (await credentials.begin(asyncio.to_thread, again=again)).start()
    assert isinstance(step, Token)
    return parse_client_first(step.data).token


@pytest.mark.parametrize(
    ("life_s", "share", "renew_s"),
    [
        (3_600, 0.0, 2_880),  # the share
        (3_600, 1.0, 3_060),  # and its jitter
        (600, 0.0, 300),  # not later than five minutes before the end
        (361, 0.0, 61),
        (359, 0.0, 287.2),  # too short for the minute and the five: the share alone
        (10, 0.0, 8),
    ],
)
def test_a_token_is_renewed_before_it_ends(life_s: float, share: float, renew_s: float) -> None:
    at_ms = RenewalPolicy().renew_at_ms(NOW_MS, NOW_MS + life_s * 1_000, NOW_MS, share)
    assert at_ms == pytest.approx(NOW_MS + renew_s * 1_000)


def test_a_token_is_not_renewed_within_a_minute_of_its_login() -> None:
    late_ms = NOW_MS + 3_000_000
    assert RenewalPolicy().renew_at_ms(NOW_MS, NOW_MS + 3_600_000, late_ms, 0.0) == late_ms + 60_000


def test_the_end_of_a_token_is_what_it_says_or_what_the_endpoint_says() -> None:
    said = access_token(token("ES256", {"iat": 5, "exp": 9}), NOW_MS, 60)
    assert (said.begins_ms, said.ends_ms) == (5_000, 9_000)
    assert access_token("opaque", NOW_MS, 60).ends_ms == NOW_MS + 60_000
    assert access_token("opaque", NOW_MS).ends_ms is None
    assert "opaque" not in repr(access_token("opaque", NOW_MS))
    for bad in ("", "a b", "a\nb", "schlüssel"):
        with pytest.raises(NoToken):
            access_token(bad, NOW_MS)


@on_loop
async def test_many_logins_share_a_token_that_is_good() -> None:
    provide = Provider(lasting(600), lasting(600, "bob"))
    credentials = BearerCredentials(TokenProvider(provide))
    first = await asyncio.gather(*(sent(credentials) for _ in range(5)))
    assert provide.asked == 1
    assert {*first, await sent(credentials, again=True)} == {first[0]}


@on_loop
async def test_a_token_that_says_no_end_is_asked_for_at_every_login() -> None:
    provide = Provider("one", "two")
    credentials = BearerCredentials(TokenProvider(provide))
    assert [await sent(credentials), await sent(credentials)] == ["one", "two"]


@on_loop
async def test_the_old_token_is_used_while_no_other_can_be_had() -> None:
    old = lasting(100)
    provide = Provider(old, OSError("away"), lasting(100, "bob"))
    credentials = BearerCredentials(TokenProvider(provide), policy=RenewalPolicy(window_factor=0.0, window_jitter=0.0))
    assert [await sent(credentials), await sent(credentials)] == [old, old]
    assert await sent(credentials) != old


@on_loop
async def test_a_provider_that_fails_is_asked_again_and_not_for_ever() -> None:
    good = lasting(600)
    credentials = BearerCredentials(TokenProvider(Provider(OSError("away"), OSError("away"), good)), policy=QUICK)
    assert await sent(credentials) == good
    provide = Provider(OSError("the words of a stranger"))
    with pytest.raises(NoToken, match="OSError") as raised:
        await sent(BearerCredentials(TokenProvider(provide), policy=QUICK))
    assert provide.asked == TRIES_MAX
    assert "stranger" not in str(raised.value)


@on_loop
async def test_a_provider_may_be_awaited_and_must_give_text() -> None:
    async def provide() -> str:
        return "awaited"

    assert await sent(BearerCredentials(TokenProvider(provide))) == "awaited"
    wrong: Any = lambda: 7  # noqa: E731 - what a program may hand over by mistake
    with pytest.raises(NoToken, match="gave no text"):
        await sent(BearerCredentials(TokenProvider(wrong)))


@on_loop
async def test_an_endpoint_is_asked_again_when_it_is_not_well_and_never_when_it_refuses() -> None:
    with identity_provider() as provider:
        given = BearerProperties(provider.tokens_url, "alice", Secret(provider.clients["alice"]), "read")
        assert await sent(bearer_credentials(given, policy=QUICK))
        assert (provider.tokens_given, provider.scopes) == (1, ["read"])
        provider.status = 503
        with pytest.raises(NoToken, match="status 503") as raised:
            await sent(bearer_credentials(given, policy=QUICK))
        assert raised.value.again
        provider.status = 200
        wrong = BearerProperties(provider.tokens_url, "alice", Secret("a guess"))
        with pytest.raises(NoToken, match="status 401") as raised:
            await sent(bearer_credentials(wrong, policy=QUICK))
        assert not raised.value.again


def test_properties_come_before_the_jaas_text() -> None:
    jaas = JAAS + 'clientId="a" clientSecret="b" scope="c" extension_trace="7";'
    there = Address("https", "there", 443, "/")
    found = bearer_credentials(BearerProperties("https://there", jaas=jaas))
    assert (found.source, found.extensions) == (TokenEndpoint(there, "a", Secret("b"), "c"), {"trace": "7"})
    found = bearer_credentials(BearerProperties("https://there", "x", Secret("y"), "z", jaas))
    assert found.source == TokenEndpoint(there, "x", Secret("y"), "z")
    found = bearer_credentials(BearerProperties("file:///token"))
    assert found.source == TokenFile(Address("file", "", 0, "/token"))


@pytest.mark.parametrize(
    ("given", "failure", "words"),
    [
        (BearerProperties(), BadLogin, "needs sasl.oauthbearer.token.endpoint.url"),
        (BearerProperties("ftp://there"), BadLogin, "begins with http:"),
        (BearerProperties("https://there", "a"), BadLogin, "client.id and .secret"),
        (BearerProperties("file:///token", jaas="what"), BadJaas, "JAAS"),
        (BearerProperties("file:///token", jaas=JAAS + 'extension_auth="x";'), Malformed, "auth"),
    ],
)
def test_what_names_no_login_is_refused_at_once(given: BearerProperties, failure: type[Exception], words: str) -> None:
    with pytest.raises(failure, match=words):
        bearer_credentials(given)
