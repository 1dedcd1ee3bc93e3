"""Questions to web servers that the configuration names: what is read of an answer, and what is not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.transport import web
from penstock.transport.web import ANSWER_BYTES_MAX, Address, Allowed, BadAddress, WebFailed, address_of, ask
from tests.unit.transport.pairs import on_loop


@contextlib.asynccontextmanager
async def answering(*parts: bytes, hold: bool = False) -> AsyncIterator[tuple[Address, list[bytes]]]:
    """A server that says the same to everybody; `hold` leaves its connections open afterwards."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            for part in parts:
                writer.write(part)
                await writer.drain()
            if hold:
                await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield address_of(f"http://127.0.0.1:{port}/keys?a=secret"), heard
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
    ],
)
@on_loop
async def test_an_answer_is_read_however_it_says_its_length(answer: bytes) -> None:
    async with answering(answer) as (address, heard):
        assert await ask(address, asyncio.to_thread) == b"hello"
    assert heard[0].startswith(b"GET /keys?a=secret HTTP/1.1\r\nHost: 127.0.0.1:")


@pytest.mark.parametrize(
    ("answer", "words", "again"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n", "status 302", False),
        (b"HTTP/1.1 404 Not here\r\n\r\nprivate", "status 404", False),
        (b"HTTP/1.1 503 Not well\r\n\r\nprivate", "status 503", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (ANSWER_BYTES_MAX + 1), "no HTTP that is read here", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no HTTP that is read here", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", "no HTTP that is read here", False),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * (ANSWER_BYTES_MAX + 1), "no HTTP that is read here", False),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 5 + b"x" * 100_000, "no HTTP that is read here", False),
        (b"private", "ended within the answer", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "ended within the answer", True),
        (b"SSH-2.0-private\r\n", "no HTTP that is read here", False),
    ],
)
@on_loop
async def test_cve_2025_27817_a_bad_answer_is_none_and_shows_nothing_of_itself(
    answer: bytes, words: str, again: bool
) -> None:
    async with answering(answer) as (address, _):
        with pytest.raises(WebFailed, match=words) as raised:
            await ask(address, asyncio.to_thread)
    assert raised.value.again is again
    assert "private" not in str(raised.value)
    assert "secret" not in str(raised.value)


@on_loop
async def test_an_answer_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "TIMEOUT_MS", 50)
    async with answering(b"HTTP/1.1 200 OK\r\n", hold=True) as (address, _):
        with pytest.raises(WebFailed, match="no answer within") as raised:
            await ask(address, asyncio.to_thread)
    assert raised.value.again


@on_loop
async def test_nobody_there_may_be_there_later() -> None:
    with pytest.raises(WebFailed) as raised:
        await ask(Address("http", "127.0.0.1", 1, "/"), asyncio.to_thread)
    assert raised.value.again


@on_loop
async def test_a_file_is_read_up_to_a_megabyte_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"k" * ANSWER_BYTES_MAX)
    assert await ask(address_of(f"file://{path}"), asyncio.to_thread) == path.read_bytes()
    path.write_bytes(b"k" * (ANSWER_BYTES_MAX + 1))
    for bad, words in ((path, "more than"), (tmp_path, "no file"), (tmp_path / "none", "No such file")):
        with pytest.raises(WebFailed, match=words):
            await ask(address_of(f"file://{bad}"), asyncio.to_thread)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://there/keys",
        "keys",
        "http://",
        "http://user:word@there/",
        "http://there/a b",
        "http://there/\r\nX: y",
        "http://there:99999/",
        "file://there/keys",
        "file:keys",
        "file:///a%00b",
        "http://there/#part",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadAddress):
        address_of(url)


def test_cve_2025_27817_only_what_is_allowed_word_for_word_may_be_asked() -> None:
    allowed = Allowed(frozenset({"https://there/keys"}), frozenset({"/etc/keys"}))
    assert allowed.check("https://there/keys") == Address("https", "there", 443, "/keys")
    assert allowed.check("file:///etc/keys") == Address("file", "", 0, "/etc/keys")
    for url in ("https://there/keys/", "http://there/keys", "file:///etc/keys/../passwd", "file:///etc"):
        with pytest.raises(BadAddress, match=r"is not in penstock.sasl.oauthbearer.allowed"):
            allowed.check(url)
    with pytest.raises(BadAddress):
        Allowed(frozenset(), frozenset()).check("https://there/keys")
