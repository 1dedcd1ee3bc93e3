"""Logins by access tokens: raw frames over real sockets, keys from an identity provider."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from penstock.model.secret import Secret
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.security.oauth.messages import INVALID_TOKEN, OAuthClient
from penstock.server.reception.bearers import Bearers
from penstock.server.reception.listener import BadListeners, Listeners
from tests.identity_provider import AUDIENCE, ISSUER, IdentityProvider, identity_provider
from tests.patience import until
from tests.unit.server.reception.test_logins import LISTENERS, Asked, asking, beat, logins_of, shake_hands
from tests.unit.server.served import Client, World, on_loop, settings_with

V = 2
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as found:
        yield found


def taking(provider: IdentityProvider, **changes: str) -> dict[str, str]:
    return {
        **LISTENERS,
        "sasl_enabled_mechanisms": "OAUTHBEARER,PLAIN",
        "sasl_oauthbearer_jwks_endpoint_url": provider.keys_url,
        "penstock_sasl_oauthbearer_allowed_urls": provider.keys_url,
        "sasl_oauthbearer_expected_issuer": ISSUER,
        "sasl_oauthbearer_expected_audience": f"other,{AUDIENCE}",
        **changes,
    }


def bearers_of(world: World) -> Bearers:
    found = logins_of(world).bearers
    assert found is not None
    return found


async def say(client: Client, data: bytes) -> SaslAuthenticateResponse:
    await client.ask(SaslAuthenticateRequest(auth_bytes=data), V)
    reply: SaslAuthenticateResponse = (await client.reply(SaslAuthenticateRequest(), V))[1]
    return reply


async def log_in(client: Client, token: str) -> SaslAuthenticateResponse:
    assert (await shake_hands(client, "OAUTHBEARER")).error_code == 0
    first = OAuthClient(Secret(token)).start()
    return await say(client, first.data)  # type: ignore[union-attr]  # the first step is a token


async def assert_refused(world: World, token: str) -> None:
    """As Kafka does it: the reason as if it were a challenge, one byte of the client's, and then the error."""
    client = await world.stranger()
    challenge = await log_in(client, token)
    assert (challenge.error_code, challenge.auth_bytes) == (0, INVALID_TOKEN.encode())
    refusal = await say(client, b"\x01")
    assert (refusal.error_code, refusal.error_message) == (58, INVALID_TOKEN)
    assert await client.hung_up()


@on_loop
async def test_a_token_logs_in_until_it_ends(provider: IdentityProvider) -> None:
    asked = Asked()
    async with asking(None, asked, **taking(provider)) as world:
        client = await world.stranger()
        reply = await log_in(client, provider.token("alice"))
        assert (reply.error_code, reply.auth_bytes) == (0, b"")
        assert 500_000 < reply.session_lifetime_ms <= provider.lifetime_s * 1_000
        await beat(client)
        assert asked.principals == ["User:alice"]
        assert provider.key_sets_given == 1


def unsigned(provider: IdentityProvider) -> str:
    return jwt.encode(jwt.decode(provider.token(), options={"verify_signature": False}), None, "none")


def confused(provider: IdentityProvider) -> str:
    """The public key, which everybody has, taken for a shared secret."""
    public = provider.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head, claims, _ = provider.token().split(".")
    header = {**json.loads(base64.urlsafe_b64decode(head + "==")), "alg": "HS256"}
    signed = ".".join((base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("="), claims))
    import hashlib
    import hmac

    signature = hmac.digest(public, signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


BAD: dict[str, Any] = {
    "expired": lambda idp: idp.token(iat=int(time.time()) - 900, exp=int(time.time()) - 300),
    "not yet": lambda idp: idp.token(nbf=int(time.time()) + 300),
    "wrong signature": lambda idp: idp.token(key=ec.generate_private_key(ec.SECP256R1())),
    "wrong issuer": lambda idp: idp.token(iss="https://else"),
    "wrong audience": lambda idp: idp.token(aud="else"),
    "nobody": lambda idp: idp.token(" "),
    "algorithm none": unsigned,
    "algorithm confusion": confused,
    "unknown key": lambda idp: idp.token(key_id="of-somebody"),
    "no token": lambda _idp: "abc",
}


@pytest.mark.parametrize("what", BAD)
@on_loop
async def test_a_bad_token_is_refused_with_kafkas_answer(provider: IdentityProvider, what: str) -> None:
    async with asking(**taking(provider)) as world:
        await assert_refused(world, BAD[what](provider))
        assert logins_of(world).failed["OAUTHBEARER"] == 1
        assert (await log_in(await world.stranger(), provider.token())).error_code == 0


@on_loop
async def test_keys_that_change_are_followed_and_the_old_one_is_good_no_more(provider: IdentityProvider) -> None:
    async with asking(**taking(provider)) as world:
        old = provider.token()
        await log_in(await world.stranger(), old)
        provider.rotate()
        reply = await log_in(await world.stranger(), provider.token())
        assert (reply.error_code, reply.auth_bytes) == (0, b"")
        assert provider.key_sets_given == 2
        await assert_refused(world, old)


@on_loop
async def test_strangers_with_unknown_keys_do_not_make_the_node_ask_again_and_again(provider: IdentityProvider) -> None:
    async with asking(**taking(provider)) as world:
        for number in range(5):
            await assert_refused(world, provider.token(key_id=f"guess-{number}"))
        assert provider.key_sets_given <= 2


@on_loop
async def test_keys_stay_while_the_provider_is_away_and_without_keys_nobody_gets_in(
    provider: IdentityProvider, caplog: pytest.LogCaptureFixture
) -> None:
    async with asking(**taking(provider, sasl_oauthbearer_jwks_endpoint_refresh_ms="20")) as world:
        await until(lambda: provider.key_sets_given > 1)
        provider.status = 503
        await until(lambda: "goes on with the signing keys it has" in caplog.text)
        assert (await log_in(await world.stranger(), provider.token())).auth_bytes == b""
        assert "the provider is not well" not in caplog.text
    async with asking(**taking(provider)) as world:
        await assert_refused(world, provider.token())
        provider.status = 200
        await until(lambda: bearers_of(world).keys.age_ms(0) is not None)
        assert (await log_in(await world.stranger(), provider.token())).auth_bytes == b""


@on_loop
async def test_cve_2025_27817_a_redirect_is_not_followed(
    provider: IdentityProvider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.status = 302
    async with asking(**taking(provider)):
        await until(lambda: "status 302" in caplog.text)
    assert provider.key_sets_given == 0


@on_loop
async def test_keys_may_be_in_a_file(provider: IdentityProvider, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(provider.key_set()))
    changes = {
        "sasl_oauthbearer_jwks_endpoint_url": f"file://{path}",
        "penstock_sasl_oauthbearer_allowed_files": str(path),
    }
    async with asking(**taking(provider, **changes)) as world:
        reply = await log_in(await world.stranger(), provider.token())
        assert (reply.error_code, reply.auth_bytes) == (0, b"")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sasl_oauthbearer_jwks_endpoint_url": ""}, "sasl.oauthbearer.jwks.endpoint.url is not given"),
        ({"penstock_sasl_oauthbearer_allowed_urls": ""}, "is not in penstock.sasl.oauthbearer.allowed.urls"),
        (
            {"sasl_oauthbearer_jwks_endpoint_url": "file:///etc/passwd"},
            "is not in penstock.sasl.oauthbearer.allowed.files",
        ),
        ({"sasl_oauthbearer_jwks_endpoint_url": "ftp://there/keys"}, "begins with http:, https: or file:"),
        ({"sasl_server_callback_handler_class": "org.example.Mine"}, "names a class that is not known here"),
        ({"sasl_oauthbearer_jwks_endpoint_refresh_ms": "0"}, "are above 0"),
        (
            {
                "sasl_server_callback_handler_class": UNSECURED,
                "listener_name_clients_oauthbearer_sasl_jaas_config": (
                    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                    'unsecuredValidatorRequiredScope="admin";'
                ),
            },
            "unsecuredValidatorRequiredScope",
        ),
    ],
)
def test_a_node_that_could_check_no_token_does_not_start(
    provider: IdentityProvider, changes: dict[str, str], words: str
) -> None:
    with pytest.raises(BadListeners, match=words):
        Listeners(settings_with(**taking(provider, **changes)))


@on_loop
async def test_unsigned_tokens_are_believed_only_where_that_is_asked_for_by_name(
    provider: IdentityProvider, caplog: pytest.LogCaptureFixture
) -> None:
    changes = {
        "sasl_oauthbearer_jwks_endpoint_url": "",
        "listener_name_clients_oauthbearer_sasl_server_callback_handler_class": UNSECURED,
    }
    with caplog.at_level(logging.WARNING):
        async with asking(**taking(provider, **changes)) as world:
            assert "BELIEVES TOKENS THAT NOBODY SIGNED" in caplog.text
            assert (await log_in(await world.stranger(), unsigned(provider))).auth_bytes == b""
            await assert_refused(world, provider.token())
