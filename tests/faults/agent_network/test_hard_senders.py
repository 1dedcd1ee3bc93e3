"""Slow senders, huge senders, senders that are gone."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import zstandard

from penstock.agent.listening import streams
from tests.faults.agent_network.watching import MEMORY_BYTES, Watched, watched
from tests.patience import until, within
from tests.unit.agent.listening.channels import DEADLINE_S, on_loop

CHUNK = b"x" * (1 << 16)
HUGE_BYTES = 4 * MEMORY_BYTES


async def pour(writer: asyncio.StreamWriter, total_bytes: int = HUGE_BYTES) -> None:
    """Until it is all sent or the other side will have no more of it."""
    with contextlib.suppress(ConnectionError):
        for _ in range(total_bytes // len(CHUNK)):
            writer.write(CHUNK)
            await writer.drain()


@on_loop
async def test_messages_byte_by_byte() -> None:
    for kind, message in (
        ("tcp", b"slow but good\n"),
        ("syslog", b"29 <13>slow but good and counted<13>slow but good\n"),
        ("http", b'POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{"a": 1}'),
    ):
        async with watched(kind) as victim:
            pairs = [await victim.connect() for _ in range(50)]
            for byte in message:
                for _, writer in pairs:
                    writer.write(bytes([byte]))
                await asyncio.sleep(0)
            await victim.alive()
            wanted = 100 if kind == "syslog" else 50
            await until(lambda victim=victim, wanted=wanted: victim.made.status().events >= wanted)
            assert victim.made.status().malformed == 0
            for _, writer in pairs:
                writer.close()


@pytest.mark.parametrize(("kind", "begin"), [("tcp", b""), ("syslog", b"<13>"), ("syslog", b"999999999 <13>")])
def test_a_message_without_end(kind: str, begin: bytes) -> None:
    @on_loop
    async def walk() -> None:
        async with watched(kind) as victim:
            _, writer = await victim.connect()
            writer.write(begin)
            await pour(writer)
            await victim.alive()
            assert victim.made.status().truncated == 1, "given out once, cut"
            assert victim.held_bytes_max < 2 << 20
            writer.close()

    walk()


@on_loop
async def test_many_messages_without_end_share_the_room_for_parts() -> None:
    async with watched("tcp", 'line_bytes_max = "64 MB"') as victim:
        pairs = [await victim.connect() for _ in range(20)]
        await asyncio.gather(*(pour(writer, 2 << 20) for _, writer in pairs))
        await victim.alive()
        assert victim.held_bytes_max < MEMORY_BYTES // 2
        for _, writer in pairs:
            writer.close()


async def refused(victim: Watched, head: bytes, wanted: int, *, then: bytes = CHUNK) -> None:
    """Sends more and more until it is told off."""
    reader, writer = await victim.connect()
    writer.write(head)
    answer = asyncio.create_task(reader.readline())
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(within(DEADLINE_S)):
            while not answer.done():
                writer.write(then)
                await writer.drain()
                await asyncio.sleep(0)
    assert int((await answer).split()[1]) == wanted
    writer.transport.abort()


@on_loop
async def test_http_requests_without_end() -> None:
    post = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    async with watched("http", 'body_bytes_max = "1 MB"') as victim:
        await refused(
            victim, post + b"transfer-encoding: chunked\r\n\r\n", 413, then=b"%x\r\n%s\r\n" % (len(CHUNK), CHUNK)
        )
        await refused(victim, post + b"transfer-encoding: chunked\r\n\r\nffffffffff\r\n", 413)
        await refused(victim, post + b"transfer-encoding: chunked\r\n\r\n", 400, then=b"1\r\nx\r\n" * 500)
        await refused(victim, post + b"content-length: 99999999999\r\n\r\n", 413)
        await refused(victim, post + b"x-endless: ", 431)
        await refused(victim, b"POST /", 431)
        await refused(victim, post, 431, then=b"x-more: " + b"y" * 100 + b"\r\n")
        await victim.alive()
        assert victim.held_bytes_max < 4 << 20


@on_loop
async def test_bombs() -> None:
    async with watched("http") as victim:
        for encoding, bomb in (
            (b"gzip", gzip.compress(bytes(32 << 20), 1)),
            (b"zstd", zstandard.compress(bytes(64 << 20))),
            (b"gzip", gzip.compress(b"[" + b"{}," * (1 << 20) + b"{}]", 1)),
            (b"gzip", gzip.compress(b'{"a":' + b"[" * (3 << 20), 1)),
        ):
            answers = await asyncio.gather(*(victim.ask(bomb, b"content-encoding: " + encoding) for _ in range(3)))
            assert {int(answer.split()[1]) for answer in answers} <= {400, 413, 503}
            await victim.alive()


HALVES = {"tcp": b"half a li", "syslog": b"100 <13>half", "http": b"POST / HT"}


@on_loop
async def test_connections_that_are_only_half_there_leave_room_for_others() -> None:
    for kind, part in HALVES.items():
        async with watched(kind, "connections_max = 150") as victim:
            pairs = [await victim.connect() for _ in range(140)]
            for _, writer in pairs:
                writer.write(part)
            await victim.alive()
            pairs += [await victim.connect() for _ in range(40)]
            await until(lambda victim=victim: victim.made.status().refused == 30)
            assert victim.made.status().connections == 150
            for _, writer in pairs:
                writer.transport.abort()
            await until(lambda victim=victim: victim.made.status().connections == 0)


@on_loop
async def test_connections_that_are_only_half_there_are_given_up() -> None:
    for kind in ("tcp", "syslog"):
        async with watched(kind, "idle_timeout = '100ms'") as victim:
            for _ in range(50):
                (await victim.connect())[1].write(HALVES[kind])
            await until(lambda victim=victim: victim.made.status().events == 50)
            await until(lambda victim=victim: victim.made.status().connections == 0)


@pytest.fixture
def tls_folder(tmp_path: Path) -> Path:
    certificate = trustme.CA().issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    return tmp_path


TLS = (
    'listen = ["udp://127.0.0.1:0", "tls://127.0.0.1:0", "tcp://127.0.0.1:0"]\n'
    'tls = { cert = "cert.pem", key = "key.pem" }\nconnections_max = 30\n'
)


def half_a_handshake(number: int) -> bytes:
    return b"\x16\x03\x01\x02\x00\x01"[: number % 7]


def test_handshakes_that_never_end_count_as_connections(tls_folder: Path) -> None:
    @on_loop
    async def walk() -> None:
        async with watched("syslog", TLS, tls_folder) as victim:
            pairs = [await victim.connect("tls") for _ in range(31)]
            await until(lambda: victim.made.status().refused == 1)
            assert victim.made.status().connections == 30
            await victim.alive()
            for number, (_, writer) in enumerate(pairs):
                writer.write(half_a_handshake(number) if number % 2 else b"<13>not TLS at all\n")
                await asyncio.sleep(0)
                writer.transport.abort()
            await until(lambda: victim.made.status().connections == 0)

    walk()


def test_handshakes_that_never_end_are_cut(tls_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HANDSHAKE_TIMEOUT_S", 0.1)

    @on_loop
    async def walk() -> None:
        async with watched("syslog", TLS, tls_folder) as victim:
            for number in range(20):
                (await victim.connect("tls"))[1].write(half_a_handshake(number))
            await until(lambda: victim.made.status().errors == 20)
            assert victim.made.status().connections == 0

    walk()


@contextlib.contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    """This process may open so many more and no others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as highest:
        limit = highest.fileno() + more
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@on_loop
async def test_running_out_of_descriptors_is_a_pause() -> None:
    async with watched("tcp") as victim:
        await victim.alive()
        # Of a connection on loopback both ends are ours: the senders get theirs, the input does not.
        senders = [socket.socket() for _ in range(20)]
        for sender in senders:
            sender.setblocking(False)
        loop = asyncio.get_running_loop()
        with few_descriptors(5):
            for sender in senders:
                await loop.sock_connect(sender, ("127.0.0.1", victim.port()))
            await until(lambda: victim.made.status().connections >= 3)
        await until(lambda: victim.made.status().connections == 20)
        await victim.alive()
        for sender in senders:
            sender.close()
