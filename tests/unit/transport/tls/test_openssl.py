"""OpenSSL's own program on the far side: what it agrees to, hears and says is told by it, not by us."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.transport.intake import Intake
from penstock.transport.tls.failures import Kind
from penstock.transport.tls.stream import TlsShared, TlsTerms, dial_tls
from tests.patience import until, within
from tests.unit.transport.pairs import Recorder, framed, on_loop
from tests.unit.transport.tls.loops import listening
from tests.unit.transport.tls.world import (
    HOST,
    authority_text,
    chain_text,
    client_context,
    key_text,
    leaf,
    server_context,
    trusting,
    write_private,
)

VERSIONS = {"TLSv1.2": "-tls1_2", "TLSv1.3": "-tls1_3"}


@contextlib.asynccontextmanager
async def openssl(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("openssl", *words, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def answering(stream: Recorder, frame: bytearray) -> bool:
    stream.send([framed(bytes(frame))])
    return True


async def taken(process: asyncio.subprocess.Process, size: int) -> bytes:
    assert process.stdout is not None
    async with asyncio.timeout(within(30)):
        return await process.stdout.readexactly(size)


async def complaint(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(within(30)):
        return (await process.stderr.read()).decode()


def client_words(port: int, folder: Path, *more: str) -> tuple[str, ...]:
    trusted = write_private(folder / "ca.pem", authority_text())
    known = ("-CAfile", trusted, "-verify_return_error", "-verify_hostname", HOST, "-servername", HOST)
    return ("s_client", "-connect", f"127.0.0.1:{port}", "-quiet", "-no_ign_eof", *known, *more)


@pytest.mark.parametrize("version", VERSIONS)
@on_loop
async def test_a_client_of_openssl_is_served(tmp_path: Path, version: str) -> None:
    bob = write_private(tmp_path / "bob.pem", chain_text(leaf("bob")) + key_text(leaf("bob")))
    async with listening(server_context(client_auth="required", **trusting())) as listener:
        listener.prepare = lambda stream: setattr(stream, "finishes", answering)
        words = client_words(listener.port, tmp_path, VERSIONS[version], "-cert", bob, "-key", bob)
        async with openssl(*words) as client:
            assert client.stdin is not None
            for size in (1, 300, 100_000):
                client.stdin.write(framed(bytes(size)))
                assert await taken(client, size + 4) == framed(bytes(size))
            transport = listener.streams[0].transport
            assert transport is not None
            assert transport.get_extra_info("ssl_object").version() == version
            client.stdin.close()
            await until(lambda: listener.streams[0].gone)


@on_loop
async def test_a_client_of_openssl_hears_the_alert_that_is_meant(tmp_path: Path) -> None:
    stranger = leaf("bob", by="others")
    path = write_private(tmp_path / "bob.pem", chain_text(stranger) + key_text(stranger))
    async with listening(server_context(client_auth="required", **trusting())) as listener:
        for more, alert, kind in (
            ((), "certificate required", Kind.NO_CERTIFICATE),
            (("-cert", path, "-key", path), "unknown ca", Kind.UNTRUSTED),
        ):
            async with openssl(*client_words(listener.port, tmp_path, *more)) as client:
                assert alert in await complaint(client)
            assert listener.failures[-1].kind is kind


@on_loop
async def test_a_client_of_openssl_cannot_begin_anew_in_the_middle(tmp_path: Path) -> None:
    """`R` on a line of its own makes it try."""
    async with listening() as listener:
        words = [word for word in client_words(listener.port, tmp_path, "-tls1_2") if word != "-quiet"]
        async with openssl(*words) as client:
            await until(lambda: listener.outcomes == [None])
            assert client.stdin is not None
            client.stdin.write(b"R\n")
            said = await complaint(client)
            assert "no renegotiation" in said or "renegotiat" in said


@pytest.mark.parametrize("version", VERSIONS)
@on_loop
async def test_a_server_of_openssl_is_dialled(tmp_path: Path, version: str) -> None:
    own = write_private(tmp_path / "own.pem", chain_text(leaf()) + key_text(leaf()))
    trusted = write_private(tmp_path / "ca.pem", authority_text())
    demands = ("-Verify", "2", "-verify_return_error", "-CAfile", trusted)
    words = ("s_server", "-accept", "127.0.0.1:0", "-cert", own, "-key", own, *demands, VERSIONS[version])
    async with openssl(*words) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        async with asyncio.timeout(within(30)):
            while not (found := re.match(rb"ACCEPT .*:(\d+)", await server.stdout.readline())):
                pass
        loop = asyncio.get_running_loop()
        stream = Recorder(loop, Intake(loop), 1 << 20)
        context = client_context(leaf("bob"))
        terms = TlsTerms(TlsShared(loop), context, lambda _stream, _outcome: None, server_side=False)
        await dial_tls(terms, lambda: stream, "127.0.0.1", int(found[1]), called=HOST)
        stream.send([b"these are the words\n"])
        async with asyncio.timeout(within(30)):
            while b"these are the words" not in await server.stdout.readline():
                pass
        # A frame of five bytes; the program sends what it reads line by line.
        server.stdin.write(b"\0\0\0\x05four\n")
        await until(lambda: stream.frames)
        assert stream.frames == [bytearray(b"four\n")]
        stream.close()
        await until(lambda: stream.gone)
