"""Dials with TLS, and everything that goes wrong with them: within a second, in words that help."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from penstock.model.secret import Secret
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.transport.dial import Foreign, Link, LinkError, Severed, Silent, Untrusted
from penstock.transport.dial_security import DialSecurity
from penstock.transport.login import password_credentials
from penstock.transport.net import AsyncioNet
from penstock.transport.tls import source as source_module
from penstock.transport.tls.settings import TlsSettings, read_settings
from tests.patience import within
from tests.unit.transport.pairs import on_loop
from tests.unit.transport.secured_peer import PASSWORD, Peer, listening
from tests.unit.transport.tls.made import self_signed
from tests.unit.transport.tls.world import (
    authority_text,
    chain_text,
    key_text,
    leaf,
    server_context,
    settings,
    trusting,
    write_private,
)

HERE = ("127.0.0.1", "localhost")


def ours() -> TlsSettings:
    return settings(**trusting())


async def dialled(peer: Peer, security: DialSecurity | None, host: str = "127.0.0.1") -> Link:
    link = await AsyncioNet(asyncio.get_running_loop()).dial(host, peer.port, 10_000, security)
    try:
        await link.negotiate(timeout_ms=10_000)
    except BaseException:
        link.abort()
        raise
    return link


async def failure(peer: Peer, security: DialSecurity | None, host: str = "127.0.0.1") -> LinkError:
    with pytest.raises(LinkError) as found:
        async with asyncio.timeout(within(1.0)):
            await dialled(peer, security, host)
    return found.value


@pytest.mark.parametrize("host", HERE)
def test_a_link_over_tls_is_a_link(host: str) -> None:
    @on_loop
    async def test() -> None:
        async with listening(server_context(leaf(*HERE)), login=False) as peer:
            link = await dialled(peer, DialSecurity(ours(), None), host)
            assert await link.request(HeartbeatRequest(), 4) == HeartbeatResponse()
            link.abort()

    test()


@on_loop
async def test_a_login_over_tls() -> None:
    async with listening(server_context(leaf(*HERE))) as peer:
        credentials = password_credentials("SCRAM-SHA-512", "alice", Secret(PASSWORD))
        link = await dialled(peer, DialSecurity(ours(), credentials))
        assert await link.request(HeartbeatRequest(), 4) == HeartbeatResponse()
        link.abort()


@on_loop
async def test_an_authority_that_is_not_ours() -> None:
    async with listening(server_context(leaf(*HERE, by="others")), login=False) as peer:
        found = await failure(peer, DialSecurity(ours(), None))
    assert isinstance(found, Untrusted)
    assert "the server's certificate is not trusted" in found.why
    assert found.why.endswith("name the authority that signed it in cafile or ssl.truststore.location")


@on_loop
async def test_a_host_that_the_certificate_does_not_name() -> None:
    async with listening(server_context(leaf("elsewhere.example")), login=False) as peer:
        found = await failure(peer, DialSecurity(ours(), None))
        assert isinstance(found, Untrusted)
        assert "the certificate is for somebody else" in found.why
        assert "dial it by a name in its certificate" in found.why
        unchecked = settings(**trusting(), endpoint_identification_algorithm="")
        (await dialled(peer, DialSecurity(unchecked, None))).abort()


@on_loop
async def test_a_certificate_that_has_ended() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    ended = self_signed(key, hosts=("localhost",), began=timedelta(days=-9), ends=timedelta(days=-1))
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    shown = read_settings({"ssl.keystore.key": text, "ssl.keystore.certificate.chain": ended})
    from penstock.transport.tls.contexts import listening_context
    from penstock.transport.tls.stores import load_key_store

    async with listening(listening_context(shown, load_key_store(shown.key_store), None), login=False) as peer:
        found = await failure(peer, DialSecurity(settings(truststore_certificates=ended), None), "localhost")
    assert isinstance(found, Untrusted)
    assert "not valid now: certificate has expired; have it renewed" in found.why


@on_loop
async def test_tls_on_a_plaintext_listener() -> None:
    async with listening(login=False) as peer:
        found = await failure(peer, DialSecurity(ours(), None))
    assert isinstance(found, Silent)
    assert "is this a plaintext listener?; then set security.protocol to PLAINTEXT" in found.why


@on_loop
async def test_plaintext_on_a_tls_listener() -> None:
    async with listening(server_context(leaf(*HERE)), login=False) as peer:
        found = await failure(peer, None)
    assert isinstance(found, Silent)
    assert "is this a listener with TLS? Then set security.protocol to SSL" in found.why


@on_loop
async def test_a_certificate_of_ours_that_is_missing() -> None:
    async with listening(server_context(leaf(*HERE), client_auth="required", **trusting()), login=False) as peer:
        found = await failure(peer, DialSecurity(ours(), None))
        assert isinstance(found, (Untrusted, Severed))
        assert "certificate" in found.why
        assert "log says" in found.why
        shown = settings(
            **trusting(), keystore_key=key_text(leaf("bob")), keystore_certificate_chain=chain_text(leaf("bob"))
        )
        (await dialled(peer, DialSecurity(shown, None))).abort()


@on_loop
async def test_a_peer_that_answers_plaintext_in_tls() -> None:
    """Other servers tell a plaintext client by an alert, which is the size of a frame of 352 MB."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\x15\x03\x03\x00\x02\x02\x50")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        found = await failure(Peer(port=server.sockets[0].getsockname()[1]), None)
    assert isinstance(found, Foreign)
    assert "it answers in TLS, and was dialled without: set security.protocol" in found.why


@on_loop
async def test_a_store_that_cannot_be_read_is_named() -> None:
    async with listening(server_context(leaf(*HERE)), login=False) as peer:
        missing = read_settings({"ssl.truststore.location": "/nowhere/ca.pem"})
        found = await failure(peer, DialSecurity(missing, None))
    assert isinstance(found, Untrusted)
    assert found.why == "TLS cannot be begun: /nowhere/ca.pem: no such file or directory"


def test_the_next_dial_sees_what_files_hold_by_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "LOOK_INTERVAL_MS", 0)

    @on_loop
    async def test() -> None:
        trusted = Path(write_private(tmp_path / "ca.pem", authority_text("others")))
        security = DialSecurity(read_settings({"ssl.truststore.location": str(trusted)}), None)
        async with listening(server_context(leaf(*HERE)), login=False) as peer:
            assert isinstance(await failure(peer, security), Untrusted)
            trusted.write_text(authority_text())
            (await dialled(peer, security)).abort()
            trusted.write_text("no certificate at all")
            (await dialled(peer, security)).abort()

    test()


def test_a_store_on_a_disk_that_hangs_holds_up_no_dial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "LOOK_INTERVAL_MS", 0)
    monkeypatch.setattr(source_module, "LOOK_PATIENCE_S", 0.01)

    @on_loop
    async def test() -> None:
        hangs: list[asyncio.Future[Any]] = []

        def run(work: Callable[..., Any], *given: Any) -> asyncio.Future[Any]:
            hangs.append(asyncio.get_running_loop().create_future())
            return hangs[-1]

        settings = read_settings({"ssl.truststore.location": write_private(tmp_path / "ca.pem", authority_text())})
        security = DialSecurity(settings, None, run)
        assert security.tls is not None
        security.tls.load()
        async with listening(server_context(leaf(*HERE)), login=False) as peer:
            for _ in range(3):
                (await dialled(peer, security)).abort()
        assert len(hangs) == 1
        hangs[0].cancel()

    test()


def test_a_key_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    from dataclasses import replace

    @on_loop
    async def test() -> None:
        (tmp_path / "chain.pem").write_text(chain_text(leaf("bob")))
        key = write_private(tmp_path / "key.pem", key_text(leaf("bob")))
        given = settings(**trusting())
        store = replace(given.key_store, location=str(tmp_path / "chain.pem"), key_location=key)
        tls = replace(given, key_store=store)
        async with listening(server_context(leaf(*HERE), client_auth="required", **trusting()), login=False) as peer:
            (await dialled(peer, DialSecurity(tls, None))).abort()
        Path(key).chmod(0o644)
        with pytest.raises(Exception, match="others can get at it"):
            DialSecurity(tls, None).tls.load()  # type: ignore[union-attr]

    test()


def test_a_plaintext_dial_imports_nothing_of_this() -> None:
    program = """
import asyncio, sys
from penstock.transport.net import AsyncioNet
from penstock.transport.dial import Unreachable

async def main():
    try:
        await AsyncioNet(asyncio.get_running_loop()).dial("127.0.0.1", 1, 1_000)
    except Unreachable:
        pass

asyncio.run(main())
named = ("penstock.transport.tls", "penstock.transport.login", "penstock.security")
print([name for name in sys.modules if name.startswith(named)])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=within(60)
    )
    assert ran.stdout == "[]\n"
