"""Clients at brokers that they cannot log in to, or must not trust: told at once, and not tried for ever."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer
from penstock.client.errors import AuthenticationFailed, ClientError, NotReachable, NotTrusted
from penstock.client.spans import Span, SpanReader
from penstock.model.errors import SASL_AUTHENTICATION_FAILED
from tests.patience import within
from tests.unit.transport.pairs import on_loop
from tests.unit.transport.secured_peer import PASSWORD, Peer, listening
from tests.unit.transport.tls.world import authority_text, leaf, server_context, write_private

Use = Callable[[dict[str, Any]], Coroutine[Any, Any, Any]]


async def administer(settings: dict[str, Any]) -> None:
    async with Admin(**settings) as admin:
        await admin.topics()


async def produce(settings: dict[str, Any]) -> None:
    async with Producer(**settings) as producer:
        await producer.send("orders", b"v")


async def consume(settings: dict[str, Any]) -> None:
    async with Consumer("orders", **settings) as consumer:
        await consumer.poll(timeout_ms=60_000)


async def consume_in_a_group(settings: dict[str, Any]) -> None:
    async with Consumer("orders", group_id="g", **settings) as consumer:
        await consumer.poll(timeout_ms=60_000)


async def read_a_span(settings: dict[str, Any]) -> None:
    async with SpanReader(**settings) as reader:
        async for _ in reader.read([Span("orders", "", 0, 0, 1)]):
            pass


EVERYBODY = [administer, produce, consume, consume_in_a_group, read_a_span]


async def failure(use: Use, peer: Peer, **settings: Any) -> ClientError:
    with pytest.raises(ClientError) as found:
        async with asyncio.timeout(within(10.0)):
            await use({"bootstrap_servers": f"127.0.0.1:{peer.port}", **settings})
    return found.value


@pytest.mark.parametrize("use", EVERYBODY)
def test_a_login_that_is_not_taken_is_told_at_once(use: Use) -> None:
    @on_loop
    async def test() -> None:
        async with listening() as peer:
            found = await failure(use, peer, username="alice", password="not this one")
            assert isinstance(found, AuthenticationFailed)
            assert found.error is SASL_AUTHENTICATION_FAILED
            assert not found.retriable
            assert "check the user's name and password" in found.why
            assert "not this one" not in str(found)
            assert peer.heard.count(17) <= 3

    test()


@pytest.mark.parametrize("use", EVERYBODY)
def test_a_broker_that_is_not_trusted_is_told_at_once(use: Use, tmp_path: Path) -> None:
    @on_loop
    async def test() -> None:
        cafile = write_private(tmp_path / "ca.pem", authority_text("others"))
        async with listening(server_context(leaf("127.0.0.1")), login=False) as peer:
            found = await failure(use, peer, cafile=cafile)
            assert isinstance(found, NotTrusted)
            assert "name the authority that signed it in cafile" in found.why

    test()


@contextlib.asynccontextmanager
async def of_the_wrong_kind(tls: bool) -> AsyncIterator[Peer]:
    async with listening(server_context(leaf("127.0.0.1")) if tls else None, login=False) as peer:
        yield peer


@pytest.mark.parametrize("use", EVERYBODY)
@pytest.mark.parametrize("tls", [True, False])
def test_a_listener_of_the_other_kind_is_told_after_a_few_tries(use: Use, tls: bool, tmp_path: Path) -> None:
    @on_loop
    async def test() -> None:
        cafile = write_private(tmp_path / "ca.pem", authority_text())
        async with of_the_wrong_kind(tls) as peer:
            found = await failure(use, peer, **({} if tls else {"cafile": cafile}))
        assert isinstance(found, NotReachable)
        wanted = "is this a listener with TLS? Then set security.protocol" if tls else "is this a plaintext listener?"
        assert wanted in found.why

    test()


@on_loop
async def test_the_right_password_is_taken() -> None:
    """The peer serves nothing but heartbeats, which is what the Admin finds out then."""
    async with listening() as peer:
        found = await failure(administer, peer, username="alice", password=PASSWORD)
    assert "does not serve Metadata" in found.why
