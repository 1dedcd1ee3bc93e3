"""Logins over a dialled link, against a server's own machine on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock.model.errors import SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM
from penstock.model.secret import Secret
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.security.jaas.entry import BadJaas
from penstock.security.scram.keys import SHA_256
from penstock.transport.dial import Link, LinkError, LoginFailed, Severed
from penstock.transport.dial_security import DialSecurity
from penstock.transport.login import BadLogin, PasswordCredentials, credentials_of, password_credentials
from penstock.transport.net import AsyncioNet
from tests.patience import until
from tests.unit.transport.pairs import on_loop
from tests.unit.transport.secured_peer import HEARTBEAT, PASSWORD, SASL_AUTHENTICATE, Peer, listening

SCRAM_JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required "


def alice(mechanism: str = "SCRAM-SHA-256", password: str = PASSWORD) -> PasswordCredentials:
    return password_credentials(mechanism, "alice", Secret(password))


async def dialled(peer: Peer, credentials: PasswordCredentials, run: Callable[..., Any] = asyncio.to_thread) -> Link:
    net = AsyncioNet(asyncio.get_running_loop())
    link = await net.dial("127.0.0.1", peer.port, 5_000, DialSecurity(None, credentials, run))
    try:
        await link.negotiate(timeout_ms=5_000)
    except BaseException:
        link.abort()
        raise
    return link


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_link_logs_in_right_after_it_asked_for_versions(mechanism: str) -> None:
    @on_loop
    async def test() -> None:
        async with listening() as peer:
            link = await dialled(peer, alice(mechanism))
            assert peer.heard[:2] == [18, 17]
            assert set(peer.heard[2:]) == {SASL_AUTHENTICATE}
            assert await link.request(HeartbeatRequest(), 4) == HeartbeatResponse()
            link.abort()

    test()


@on_loop
async def test_passwords_are_salted_off_the_loop() -> None:
    off_the_loop: list[Any] = []

    async def run(work: Callable[..., Any]) -> Any:
        off_the_loop.append(work)
        return await asyncio.to_thread(work)

    async with listening() as peer:
        link = await dialled(peer, alice(), run)
        assert len(off_the_loop) == 1
        link.abort()


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-512", "due to invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
def test_a_login_that_fails_has_the_peers_words_and_what_to_try_and_no_password(mechanism: str, words: str) -> None:
    @on_loop
    async def test() -> None:
        async with listening() as peer:
            with pytest.raises(LoginFailed) as found:
                await dialled(peer, alice(mechanism, "not this one"))
        assert words in found.value.why
        assert found.value.why.endswith(
            "check the user's name and password, and that the user exists for this mechanism"
        )
        assert found.value.error is SASL_AUTHENTICATION_FAILED
        assert "not this one" not in repr(found.value) + str(found.value) + repr(alice(mechanism, "not this one"))

    test()


@on_loop
async def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are() -> None:
    async with listening(mechanisms=("PLAIN",)) as peer:
        with pytest.raises(LoginFailed, match=r"it offers PLAIN; set sasl.mechanism to one that it offers") as found:
            await dialled(peer, alice())
        assert found.value.error is UNSUPPORTED_SASL_MECHANISM


@on_loop
async def test_a_peer_that_asks_for_too_much_work_is_refused() -> None:
    async with listening(iterations=1_000_001) as peer:
        with pytest.raises(LoginFailed, match="1000001 rounds"):
            await dialled(peer, alice())


@on_loop
async def test_a_login_is_renewed_while_answers_to_what_was_asked_before_still_come() -> None:
    async with listening(max_reauth_ms=1_500, holds=True) as peer:
        link = await dialled(peer, alice("SCRAM-SHA-512"))
        before = link.request(HeartbeatRequest(), 4)
        await until(lambda: peer.held)
        logins = peer.heard.count(17)
        await until(lambda: peer.heard.count(17) > logins)
        # Asked while the login is under way, so it is sent afterwards: the peer would close the connection otherwise.
        meanwhile = link.request(HeartbeatRequest(group_id="later"), 4)
        peer.release()
        assert await before == await meanwhile == HeartbeatResponse()
        assert peer.heard[-1] == HEARTBEAT
        assert len(peer.streams) == 1
        link.abort()


@on_loop
async def test_a_login_that_is_not_renewed_ends_the_link() -> None:
    async with listening(max_reauth_ms=1_200) as peer:
        link = await dialled(peer, alice("PLAIN"))
        peer.password = "changed"
        await until(lambda: not link.up)
        with pytest.raises(Severed, match=r"the login could not be renewed: the login failed: .*Invalid username"):
            await link.request(HeartbeatRequest(), 4)


@on_loop
async def test_a_peer_that_falls_silent_within_a_login_is_not_waited_for() -> None:
    async with listening() as peer:
        peer.answer = lambda stream, frame, sasl: (  # type: ignore[method-assign]
            Peer.answer(peer, stream, frame, sasl) if frame[1] == 18 else None
        )
        net = AsyncioNet(asyncio.get_running_loop())
        link = await net.dial("127.0.0.1", peer.port, 5_000, DialSecurity(None, alice()))
        with pytest.raises(LinkError, match=r"no login within 50 ms|no reply to SaslHandshake"):
            await link.negotiate(timeout_ms=50)
        link.abort()


def test_the_text_of_a_login_module_is_a_login() -> None:
    login = credentials_of("SCRAM-SHA-256", SCRAM_JAAS + "username='a' password='b' tokenauth=true;")
    assert login == PasswordCredentials(SHA_256.name, "a", Secret("b"), token=True)
    for mechanism, text, words in (
        ("SCRAM-SHA-256", SCRAM_JAAS + "username='a';", "no password"),
        ("GSSAPI", SCRAM_JAAS + ";", "this side logs in by PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ("PLAIN", SCRAM_JAAS + ";", "does not log in by PLAIN"),
    ):
        with pytest.raises((BadLogin, BadJaas), match=words):
            credentials_of(mechanism, text)
    with pytest.raises(BadLogin, match="NUL"):
        password_credentials("PLAIN", "a\0", Secret("b"))
