"""Delegation tokens through the Admin, and clients that log in with them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer, blocking
from penstock.client.admin import Acl, DelegationToken, ScramPassword
from penstock.client.errors import AuthenticationFailed, ClientError
from penstock.model.errors import (
    DELEGATION_TOKEN_AUTH_DISABLED,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_NOT_FOUND,
    DELEGATION_TOKEN_OWNER_MISMATCH,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
)
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within

SECRET = {"delegation.token.secret.key": "the same on all nodes"}
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedBroker]:
    with broker(SECRET, secure=True) as running:
        yield running


def as_user(running: EmbeddedBroker, name: str, password: str) -> dict[str, Any]:
    return {**running.client_settings, "username": name, "password": password}


def by_token(running: EmbeddedBroker, token: DelegationToken, mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
    settings = {name: value for name, value in running.client_settings.items() if name not in ("username", "password")}
    login = {"sasl_jaas_config": token.jaas_config, "mechanism": mechanism, "security_protocol": "SASL_SSL"}
    return {**settings, **login}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_whoever_has_a_token_does_what_its_owner_may(secured: EmbeddedBroker, mechanism: str) -> None:
    async def main() -> None:
        topic = f"lent-{mechanism}"
        async with Admin(**secured.client_settings) as admin:
            token = await admin.create_token()
            await admin.create_topic(topic)
        settings = by_token(secured, token, mechanism)
        async with (
            Producer(**settings) as producer,
            Consumer(topic, **settings, auto_offset_reset="earliest") as reader,
        ):
            await producer.send(topic, b"v")
            async with asyncio.timeout(within(20)):
                while not (got := await reader.poll(timeout_ms=500)):
                    pass
            assert [record.value for record in got] == [b"v"]
        async with Admin(**settings) as admin:
            for call in (admin.create_token, admin.describe_tokens):
                with pytest.raises(ClientError) as refused:
                    await call()
                assert refused.value.error is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED

    asyncio.run(main())


def test_tokens_are_made_told_renewed_and_ended_by_those_who_may(secured: EmbeddedBroker) -> None:
    async def main() -> None:
        async with Admin(**secured.client_settings) as admin:
            people = [ScramPassword(name, name) for name in ("alice", "bob", "carol")]
            (await admin.alter_scram_users(people)).checked()
            (await admin.create_acls([Acl("User:carol", "create_tokens", "user", "User:alice")])).checked()
        async with (
            Admin(**as_user(secured, "alice", "alice")) as alice,
            Admin(**as_user(secured, "bob", "bob")) as bob,
            Admin(**as_user(secured, "carol", "carol")) as carol,
        ):
            token = await alice.create_token(renewers=["User:bob"], max_lifetime_ms=2 * HOUR_MS)
            assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:alice", ("User:bob",))
            assert token.max_ms == token.expires_ms == token.issued_ms + 2 * HOUR_MS
            assert await alice.describe_tokens() == await bob.describe_tokens() == [token]
            assert await bob.describe_tokens(["User:carol"]) == await carol.describe_tokens() == []
            assert await bob.renew_token(token.password, period_ms=HOUR_MS) < token.expires_ms
            assert await bob.expire_token(token.hmac, after_ms=1_000_000) < token.expires_ms
            assert await refusal(carol.renew_token(token.hmac)) is DELEGATION_TOKEN_OWNER_MISMATCH
            assert await refusal(bob.create_token(owner="User:alice")) is DELEGATION_TOKEN_AUTHORIZATION_FAILED
            theirs = await carol.create_token(owner="User:alice")
            assert (theirs.owner, theirs.requester) == ("User:alice", "User:carol")
            await alice.expire_token(token.hmac)
            assert await refusal(alice.renew_token(token.hmac)) is DELEGATION_TOKEN_NOT_FOUND
            assert [each.token_id for each in await alice.describe_tokens()] == [theirs.token_id]

    asyncio.run(main())


async def send_on(producer: Producer) -> None:
    while True:
        await producer.send("cut", b"v")


async def refusal(call: Any) -> object:
    with pytest.raises(ClientError) as refused:
        await call
    return refused.value.error


def test_a_client_whose_token_is_ended_is_told(secured: EmbeddedBroker) -> None:
    async def main() -> None:
        async with Admin(**secured.client_settings) as admin:
            token = await admin.create_token()
            await admin.create_topic("cut")
            async with Producer(**by_token(secured, token)) as producer, asyncio.timeout(within(30)):
                await producer.send("cut", b"v")
                await admin.expire_token(token.hmac)
                with pytest.raises(AuthenticationFailed):
                    await send_on(producer)

    asyncio.run(main())


def renewals(running: EmbeddedBroker) -> int:
    entrances = (listener.entrance for listener in running.node._listeners)
    return sum(each.logins.renewed for each in entrances if each is not None and each.logins is not None)


def test_a_client_goes_on_while_its_token_is_renewed() -> None:
    async def main(running: EmbeddedBroker) -> None:
        async with Admin(**running.client_settings) as admin, asyncio.timeout(within(30)):
            token = await admin.create_token()
            await admin.create_topic("on")
            async with Producer(**by_token(running, token)) as producer:
                while renewals(running) < 2:
                    await admin.renew_token(token.hmac)
                    await producer.send("on", b"v")

    with broker({**SECRET, "delegation.token.expiry.time.ms": 2_000}, secure=True) as running:
        asyncio.run(main(running))


def test_without_a_secret_there_are_no_tokens_and_no_words_that_are_none() -> None:
    without = {"delegation.token.secret.key": ""}
    with broker(without, secure=True) as running, blocking.Admin(**running.client_settings) as admin:
        with pytest.raises(ClientError) as refused:
            admin.create_token()
        assert refused.value.error is DELEGATION_TOKEN_AUTH_DISABLED
        with pytest.raises(ValueError, match="User:name"):
            admin.create_token(owner="alice")
        with pytest.raises(ValueError, match="base64") as wrong:
            admin.renew_token("no!")
        assert "no!" not in str(wrong.value)


def test_the_blocking_twin_does_the_same(secured: EmbeddedBroker) -> None:
    with blocking.Admin(**secured.client_settings) as admin:
        token = admin.create_token(renewers=["User:dave"])
        assert token.password not in repr(token)
        assert admin.describe_tokens(["User:dave"]) == [token]
        assert admin.renew_token(token.hmac, period_ms=HOUR_MS) < token.expires_ms
        admin.expire_token(token.hmac)
        assert admin.describe_tokens(["User:dave"]) == []
