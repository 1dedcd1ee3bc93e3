"""The HTTP server against raw sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
import zstandard

from penstock.agent.http import HttpServer, Limits, Request, Response
from tests.patience import Patience, until, within
from tests.unit.agent.listening.channels import DEADLINE_S, no_errors_logged, on_loop

LIMITS = Limits(
    body_bytes_max=1_000, held_bytes_max=4_000, head_timeout_s=5, body_grace_s=5, idle_timeout_s=5, connections_max=20
)
CLOSE = b"connection: close\r\n"


async def echo(request: Request) -> Response:
    if request.path == "/raise":
        raise RuntimeError("planted")
    return Response.json(
        {"method": request.method, "path": request.path, "query": dict(request.query), "bytes": len(request.body)}
    )


@contextlib.asynccontextmanager
async def served(
    limits: Limits = LIMITS, handle: Callable[[Request], Awaitable[Response]] = echo
) -> AsyncIterator[tuple[HttpServer, int]]:
    server = HttpServer(handle, limits)
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, port
    finally:
        await server.close(within_s=0.05)
        assert (server.connections, server.counts.held_bytes) == (0, 0)


async def ask(port: int, *pieces: bytes) -> bytes:
    """What is answered until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(within(DEADLINE_S)):
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0)
            return await reader.read()
    finally:
        writer.close()


def head(method: bytes = b"POST", path: bytes = b"/", *headers: bytes) -> bytes:
    return b"".join([method, b" ", path, b" HTTP/1.1\r\nhost: x\r\n", *(each + b"\r\n" for each in headers), b"\r\n"])


def post(body: bytes, *headers: bytes, path: bytes = b"/") -> bytes:
    return head(b"POST", path, b"content-length: %d" % len(body), *headers) + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@on_loop
async def test_requests_follow_each_other_on_a_connection() -> None:
    async with served() as (server, port):
        answer = await ask(
            port, head(b"GET", b"/a%20b?x=1&y="), post(b"12345"), head(b"GET", b"/", b"connection: close")
        )
        bodies = [part.split(b"\r\n\r\n")[1] for part in answer.split(b"HTTP/1.1 200 OK")[1:]]
        assert bodies == [
            b'{"method":"GET","path":"/a b","query":{"x":"1","y":""},"bytes":0}\n',
            b'{"method":"POST","path":"/","query":{},"bytes":5}\n',
            b'{"method":"GET","path":"/","query":{},"bytes":0}\n',
        ]
        assert server.counts.requests == 3


@on_loop
async def test_a_deadline_that_is_due_at_once_can_be_moved_like_any_other() -> None:
    """uvloop makes no timer of it: what it returns does not know when it is due."""
    async with served(replace(LIMITS, idle_timeout_s=0)) as (server, port):
        answer = await ask(port, post(b"12345") + post(b"123", b"connection: close"))
        assert answer.count(b"HTTP/1.1 200 OK") == 2
        assert server.counts.requests == 2


@on_loop
async def test_byte_by_byte_it_is_the_same_request() -> None:
    async with served() as (_, port):
        request = post(b"12345", b"connection: close")
        assert b'"bytes":5' in await ask(port, *(bytes([byte]) for byte in request))


@on_loop
async def test_head_has_no_body_and_old_clients_are_closed() -> None:
    async with served() as (_, port):
        answer = await ask(port, head(b"HEAD", b"/", b"connection: close"))
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert answer.endswith(b"\r\n\r\n")
        assert status(await ask(port, b"GET / HTTP/1.0\r\n\r\n")) == 200


@on_loop
async def test_a_sender_that_asks_first_is_told_to_go_on() -> None:
    async with served() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(b"POST", b"/", b"content-length: 3", b"expect: 100-continue", b"connection: close"))
        async with asyncio.timeout(within(DEADLINE_S)):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
            writer.write(b"abc")
            assert status(await reader.read()) == 200
        writer.close()


@pytest.mark.parametrize(
    ("request_bytes", "wanted"),
    [
        (post(b"x" * 1_001), 413),
        (head(b"POST", b"/", b"content-length: 99999999999"), 413),
        (head(b"POST", b"/", b"transfer-encoding: chunked") + b"ffff\r\n" + b"x" * 5_000, 413),
        (head(b"POST", b"/", b"transfer-encoding: chunked") + b"nonsense\r\n", 400),
        (head(b"GET", b"/", b"x: " + b"y" * 40_000), 431),
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 3 + b"\r\n\r\n", 400),
        (head(b"GET", b"http://[/"), 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (post(b"abc", b"content-encoding: br", CLOSE[:-2]), 415),
        (post(b"abc", b"content-encoding: gzip", CLOSE[:-2]), 400),
        (post(gzip.compress(b"abc")[:-4], b"content-encoding: gzip", CLOSE[:-2]), 400),
        (post(gzip.compress(bytes(500_000)), b"content-encoding: gzip", CLOSE[:-2]), 413),
        (post(zstandard.compress(bytes(500_000)), b"content-encoding: zstd", CLOSE[:-2]), 413),
        (post(zlib.compress(bytes(500_000)), b"content-encoding: deflate", CLOSE[:-2]), 413),
        (post(zstandard.compress(b"abc")[:-1], b"content-encoding: zstd", CLOSE[:-2]), 400),
        (post(gzip.compress(b"") * 45, b"content-encoding: gzip", CLOSE[:-2]), 200),
        (post(gzip.compress(b"ab") + gzip.compress(b"c"), b"content-encoding: gzip", CLOSE[:-2]), 200),
        (post(b"", path=b"/raise") + head(b"GET", b"/", b"connection: close"), 500),
    ],
)
def test_what_is_refused_and_how(request_bytes: bytes, wanted: int) -> None:
    @on_loop
    async def walk() -> None:
        async with served() as (_, port):
            assert status(await ask(port, request_bytes)) == wanted
            assert status(await ask(port, post(b"fine", CLOSE[:-2]))) == 200, "others are served"

    walk()


@on_loop
async def test_inflated_bodies_arrive_plain() -> None:
    async with served() as (_, port):
        for encoding, packed in (("gzip", gzip.compress(b"x" * 900)), ("zstd", zstandard.compress(b"x" * 900))):
            answer = await ask(port, post(packed, b"content-encoding: " + encoding.encode(), CLOSE[:-2]))
            assert b'"bytes":900' in answer


@on_loop
async def test_an_endless_body_ends_with_413_however_it_is_sent() -> None:
    async with served() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(b"POST", b"/", b"transfer-encoding: chunked"))
        answer = asyncio.create_task(reader.read())
        async with asyncio.timeout(within(DEADLINE_S)):
            with contextlib.suppress(ConnectionError):
                while not answer.done():
                    writer.write(b"10\r\n" + b"x" * 16 + b"\r\n")
                    await asyncio.sleep(0)
            assert status(await answer) == 413
        writer.close()


@on_loop
async def test_tiny_chunks_are_refused_before_they_cost_much() -> None:
    async with served(replace(LIMITS, body_bytes_max=1 << 20, held_bytes_max=1 << 20)) as (_, port):
        answer = await ask(port, head(b"POST", b"/", b"transfer-encoding: chunked") + b"1\r\nx\r\n" * 5_000)
        assert status(answer) == 400
        assert b"chunks are too small" in answer


@pytest.mark.parametrize("sent", [b"", b"POST / HT", head(b"POST", b"/", b"content-length: 10") + b"12345"])
def test_who_sends_too_slowly_is_told_and_closed(sent: bytes) -> None:
    @on_loop
    async def walk() -> None:
        limits = replace(LIMITS, head_timeout_s=0.05, body_grace_s=0.05)
        async with served(limits) as (server, port):
            answer = await ask(port, sent)
            assert answer == b"" if not sent else status(answer) == 408
            await until(lambda: server.connections == 0)

    walk()


@on_loop
async def test_the_deadline_of_a_body_moves_with_what_comes() -> None:
    limits = replace(LIMITS, body_grace_s=0.05, body_bytes_per_s_min=10)
    async with served(limits) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(b"POST", b"/", b"content-length: 101", b"connection: close") + b"x" * 100)
        # A hundred bytes at ten a second have bought ten seconds.
        await asyncio.sleep(0.15)
        writer.write(b"x")
        async with asyncio.timeout(within(DEADLINE_S)):
            assert status(await reader.read()) == 200
        writer.close()


@on_loop
async def test_connections_and_bodies_are_bounded_together() -> None:
    async with served(replace(LIMITS, held_bytes_max=1_500, connections_max=3)) as (server, port):
        pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for _, writer in pairs[:2]:
            writer.write(head(b"POST", b"/", b"content-length: 900") + b"x" * 800)
        answers = [asyncio.create_task(reader.read()) for reader, _ in pairs[:2]]
        async with asyncio.timeout(within(DEADLINE_S)):
            await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
            assert status(next(task.result() for task in answers if task.done())) == 503
            assert server.counts.held_bytes == 800
        assert status(await ask(port, b"")) == 503
        assert server.refused == 1
        for _, writer in pairs:
            writer.close()
        await asyncio.gather(*answers, return_exceptions=True)


@on_loop
async def test_a_peer_that_does_not_read_gets_no_second_answer() -> None:
    asked = 0

    async def large(_request: Request) -> Response:
        nonlocal asked
        asked += 1
        return Response(200, bytes(20 << 20))

    async with served(replace(LIMITS, idle_timeout_s=0.2), large) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
        writer.write(head(b"GET") * 50)
        await until(lambda: asked)
        await until(lambda: server.connections == 0)
        assert asked == 1
        writer.close()
        with contextlib.suppress(OSError):
            await reader.read()


@on_loop
async def test_a_close_lets_answers_finish_and_cuts_what_does_not() -> None:
    release = asyncio.Event()

    async def slow(request: Request) -> Response:
        await (release.wait() if request.path == "/soon" else asyncio.Event().wait())
        return Response()

    server = HttpServer(slow, LIMITS)
    port = await server.start("127.0.0.1", 0)
    soon = asyncio.create_task(ask(port, head(b"GET", b"/soon")))
    never = asyncio.create_task(ask(port, head(b"GET", b"/never")))
    await until(lambda: server.counts.requests == 2)
    closing = asyncio.create_task(server.close(within_s=0.3))
    await asyncio.sleep(0)
    release.set()
    assert status(await soon) == 200
    await closing
    assert await never == b""
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


@on_loop
async def test_random_bytes_are_answered_or_closed_and_log_nothing() -> None:
    chance = random.Random(6)
    with no_errors_logged():
        async with served(replace(LIMITS, head_timeout_s=0.1, body_grace_s=0.1, idle_timeout_s=0.01)) as (server, port):

            async def provoke() -> None:
                request = bytearray(post(b"12345", b"x-header: y"))
                for _ in range(chance.randrange(1, 6)):
                    request[chance.randrange(len(request))] = chance.randrange(256)
                with contextlib.suppress(ConnectionError):
                    await ask(port, bytes(request)[: chance.randrange(1, len(request) + 1)] + b"\r\n\r\n")

            for _ in range(15):
                await asyncio.gather(*(provoke() for _ in range(20)))
            # There are no more than twenty places, and the server may still have to see that the last twenty have gone.
            await until(lambda: server.connections == 0)
            await _is_served(port)


async def _is_served(port: int) -> None:
    """Asks once more if the machine stood still for as long as a peer has here: such a peer is cut as a slow one."""
    patience = Patience(DEADLINE_S)
    while True:
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = await ask(port, post(b"fine", CLOSE[:-2]))
        if answer and status(answer) != 408:
            assert status(answer) == 200, answer
            return
        assert not patience.over(), answer
