"""Lines over TCP."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from penstock.agent.inputs.tcp.kind import TcpInput, make, read
from penstock.agent.portion import TRUNCATED
from tests.patience import until, within
from tests.unit.agent.listening.channels import HandChannel, environment, on_loop, port_of, read_table, running


def settings(**changes: Any) -> Any:
    text = "\n".join(f"{key} = {value!r}" for key, value in {"listen": "127.0.0.1:0", **changes}.items())
    found, mistakes = read_table(text, read)
    assert not mistakes
    return found


@contextlib.asynccontextmanager
async def connected(made: TcpInput) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(made))
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@on_loop
async def test_lines_become_events_and_the_last_needs_no_line_break() -> None:
    channel = HandChannel()
    made = make(settings(), channel, environment())
    async with running(made):
        assert made.status().words == f"listening on tcp://127.0.0.1:{port_of(made)}"
        async with connected(made) as (_, writer):
            writer.write(b"one\r\n\ntwo\nlast")
        await until(lambda: len(channel.values) == 3)
    assert channel.values == [b"one", b"two", b"last"]
    assert channel.portions[0].origin.peer == "127.0.0.1"
    assert (made.status().events, made.status().bytes, made.held_bytes) == (3, 10, 0)


@on_loop
async def test_a_sender_waits_when_there_is_no_room_and_nothing_is_lost() -> None:
    channel = HandChannel(open=False)
    made = make(settings(), channel, environment())
    lines = [b"%07d" % number + b"x" * 993 for number in range(20_000)]
    async with running(made), connected(made) as (_, writer):
        writer.write(b"\n".join(lines) + b"\n")
        await until(lambda: made.held_bytes > 0)
        assert writer.transport.get_write_buffer_size() > 0, "the sender is not rid of its bytes"
        assert made.held_bytes < 1 << 21, "one burst waits, the rest is not read"
        channel.open()
        await until(lambda: len(channel.values) == len(lines))
        assert channel.values == lines
        assert made.held_bytes == 0


@on_loop
async def test_a_line_that_is_too_long_is_cut_and_marked() -> None:
    channel = HandChannel()
    made = make(settings(line_bytes_max="1 KB"), channel, environment())
    async with running(made), connected(made) as (_, writer):
        writer.write(b"x" * 5_000 + b"\nnext\n")
        await until(lambda: len(channel.values) == 2)
    assert [(len(value), mark) for value, mark in zip(channel.values, channel.marks, strict=True)] == [
        (1_024, TRUNCATED),
        (4, ""),
    ]
    assert made.status().truncated == 1


@on_loop
async def test_connections_beyond_the_bound_are_refused_and_counted() -> None:
    channel = HandChannel()
    made = make(settings(connections_max=2), channel, environment())
    async with running(made), connected(made) as (_, first), connected(made) as (_, second):
        await until(lambda: made.status().connections == 2)
        async with connected(made) as (reader, _):
            assert await reader.read() == b""
        assert made.status().refused == 1
        first.write(b"a\n")
        second.write(b"b\n")
        await until(lambda: len(channel.values) == 2)


@on_loop
async def test_who_is_silent_for_too_long_is_closed_and_its_part_of_a_line_kept() -> None:
    channel = HandChannel()
    made = make(settings(idle_timeout="100ms"), channel, environment())
    async with running(made), connected(made) as (reader, writer):
        writer.write(b"half a li")
        async with asyncio.timeout(within(10)):
            assert await reader.read() == b""
        await until(lambda: channel.values == [b"half a li"])


@on_loop
async def test_a_stop_takes_what_was_read_and_marks_what_is_not_whole() -> None:
    channel = HandChannel()
    made = make(settings(), channel, environment())
    async with running(made), connected(made) as (_, writer):
        writer.write(b"whole\nhalf a li")
        await until(lambda: channel.values and made.held_bytes == 9)
        await made.stop()
        assert list(zip(channel.values, channel.marks, strict=True)) == [(b"whole", ""), (b"half a li", TRUNCATED)]


@on_loop
async def test_a_stop_without_room_counts_what_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.agent.inputs.streams.STOP_WITHIN_S", 0.05)
    channel = HandChannel(open=False)
    made = make(settings(), channel, environment())
    async with running(made), connected(made) as (_, writer):
        writer.write(b"a\nb\n")
        await until(lambda: made.held_bytes > 0)
        await made.stop()
        assert made.status().dropped == 2
        assert made.held_bytes == 0


@on_loop
async def test_parts_of_lines_of_many_connections_stay_within_their_budget() -> None:
    channel = HandChannel()
    made = make(settings(), channel, environment(memory_bytes=8 << 20))
    async with running(made), contextlib.AsyncExitStack() as stack:
        pairs = [await stack.enter_async_context(connected(made)) for _ in range(40)]
        for _, writer in pairs:
            writer.write(b"x" * 200_000)
        await until(
            lambda: made.status().truncated > 0 and all(not w.transport.get_write_buffer_size() for _, w in pairs)
        )
        assert made.held_bytes <= (1 << 20) + 40 * 1_024
        for _, writer in pairs:
            writer.write(b"\nfine\n")
        await until(lambda: channel.values.count(b"fine") == 40)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def certificates(authority: trustme.CA, folder: Path) -> str:
    server = authority.issue_cert("127.0.0.1")
    server.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    server.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return 'listen = "tls://127.0.0.1:0"\ntls = { cert = "cert.pem", key = "key.pem", client_ca = "ca.pem" }\n'


@on_loop
async def tls_walk(authority: trustme.CA, folder: Path) -> None:
    found, mistakes = read_table(certificates(authority, folder), read, folder)
    assert not mistakes
    channel = HandChannel()
    made = make(found, channel, environment())
    stranger, known = ssl.create_default_context(), ssl.create_default_context()
    for context in (stranger, known):
        authority.configure_trust(context)
    authority.issue_cert("client").configure_cert(known)
    async with running(made):
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(made), ssl=known)
        writer.write(b"secret\n" * 1_000)
        await until(lambda: len(channel.values) == 1_000)
        writer.close()
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(made), ssl=stranger)
            writer.write(b"let me in\n")
            assert await reader.read() == b""
        plain_reader, plain = await asyncio.open_connection("127.0.0.1", port_of(made))
        plain.write(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(OSError):
            await plain_reader.read()
        plain.close()
        await until(lambda: made.status().connections == 0)
    assert set(channel.values) == {b"secret"}


def test_tls_with_certificates_of_senders(authority: trustme.CA, tmp_path: Path) -> None:
    tls_walk(authority, tmp_path)


def test_what_is_wrong_with_the_settings(tmp_path: Path) -> None:
    def wrong(text: str) -> str:
        return "\n".join(read_table(text, read, tmp_path)[1])

    assert "has no listen" in wrong("")
    assert "is not an address" in wrong('listen = "nonsense"')
    assert "udp:// in" in wrong('listen = "udp://0.0.0.0:1"')
    assert "above 65535" in wrong('listen = "0.0.0.0:99999"')
    assert "needs tls" in wrong('listen = "tls://0.0.0.0:1"')
    assert "there is no file" in wrong('listen = "tls://0.0.0.0:1"\ntls = { cert = "a", key = "b" }')
    assert "would not be encrypted" in wrong('listen = "tcp://0.0.0.0:1"\ntls = { cert = "a", key = "b" }')
    assert "means nothing" in wrong('listen = "tls://0.0.0.0:1"\ntls = { cert = "a", key = "b", ca = "c" }')


@on_loop
async def test_an_address_in_use_is_told_with_what_to_try() -> None:
    made = make(settings(), HandChannel(), environment())
    async with running(made):
        second = make(settings(listen=f"127.0.0.1:{port_of(made)}"), HandChannel(), environment())
        with pytest.raises(OSError, match="another process listens there"):
            await second.run()
