"""Files that go to the socket without being read, over real loopback sockets."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from penstock.protocol.wire import Spans
from penstock.transport.outbox import EDGE_BYTES, LONG_BYTES
from tests.patience import until, within
from tests.unit.transport.pairs import Pair, on_loop, paired

MEGABYTE = 1 << 20


class Stretch:
    """A stretch of a real file; counts how much of it was read instead of handed over."""

    def __init__(self, path: Path, position: int, size: int) -> None:
        self._fd = os.open(path, os.O_RDWR)
        self.position, self.size, self.read_bytes = position, size, 0

    def __del__(self) -> None:
        os.close(self._fd)

    def fileno(self) -> int:
        return self._fd

    def read(self, at: int = 0, size: int | None = None) -> bytes:
        assert size is not None
        self.read_bytes += size
        return os.pread(self._fd, size, self.position + at)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)


def _file(path: Path, size: int) -> bytes:
    data = random.Random(size).randbytes(size)
    path.write_bytes(data)
    return data


def _hole(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


async def _received(pair: Pair, size: int) -> bytes:
    async with asyncio.timeout(within(10)):
        return await pair.reader.readexactly(size)


async def _stalled(pair: Pair) -> None:
    """Until the peer's silence has filled both sockets."""
    await until(lambda: pair.stream._full)
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_files_and_bytes_leave_in_order_and_are_counted(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    data = _file(tmp_path / "log", 3 * MEGABYTE)
    chance = random.Random(5)
    sizes = [1, EDGE_BYTES, LONG_BYTES - 1, LONG_BYTES, LONG_BYTES + 1, 300_000, 2 * MEGABYTE]

    async def steps() -> None:
        async with paired() as pair:
            expected = b""
            for _ in range(12):
                parts: list[Any] = []
                for _ in range(chance.randrange(1, 5)):
                    size = chance.choice(sizes)
                    at = chance.randrange(0, len(data) - size)
                    plain = chance.randbytes(chance.choice([0, 1, 90, 20_000, 200_000]))
                    parts += [plain, Spans([Stretch(tmp_path / "log", at, size)])]
                    expected += plain + data[at : at + size]
                pair.stream.send(parts)
                pair.stream.send([b"next"])
                expected += b"next"
                if chance.random() < 0.5:
                    await asyncio.sleep(0)
            assert await _received(pair, len(expected)) == expected
            assert pair.stream.bytes_out == len(expected)
            assert not pair.stream.failures
            await until(lambda: not pair.stream.backed_up)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(steps())


@on_loop
async def test_a_slow_reader_of_a_file_costs_no_memory(tmp_path: Path) -> None:
    path = _hole(tmp_path / "log", 50 * MEGABYTE)
    async with paired(reader_limit=1024) as pair:
        span = Stretch(path, 0, 50 * MEGABYTE)
        pair.stream.send([b"head", span, b"tail"])
        await _stalled(pair)
        assert pair.stream.transport is not None
        assert pair.stream.transport.get_write_buffer_size() <= EDGE_BYTES
        path.unlink()  # what is retained no longer is still sent to its end
        left, last = span.size + 8, b""
        while left:
            got = await pair.reader.read(MEGABYTE)
            left -= len(got)
            last = (last + got)[-4:]
        assert last == b"tail"
        assert span.read_bytes < span.size / 4


@on_loop
async def test_bytes_that_still_wait_in_the_transport_are_not_overtaken(tmp_path: Path) -> None:
    data = _file(tmp_path / "log", MEGABYTE)
    async with paired() as pair:
        # Within one turn of the loop: the first one has not reached the socket when the second is sent.
        pair.stream.send([b"first"])
        pair.stream.send([Stretch(tmp_path / "log", 0, MEGABYTE), b"last"])
        assert await _received(pair, MEGABYTE + 9) == b"first" + data + b"last"


@on_loop
async def test_a_file_cut_short_under_way_cuts_the_connection(tmp_path: Path) -> None:
    _hole(tmp_path / "log", 40 * MEGABYTE)
    async with paired(reader_limit=1024) as pair:
        span = Stretch(tmp_path / "log", 0, 40 * MEGABYTE)
        pair.stream.send([b"head", span])
        await _stalled(pair)
        span.truncate(30 * MEGABYTE)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await pair.reader.readexactly(40 * MEGABYTE)
        assert isinstance(pair.stream.failures[0], EOFError)


@on_loop
async def test_a_peer_that_goes_while_a_file_is_sent_is_no_failure_of_ours(tmp_path: Path) -> None:
    _hole(tmp_path / "log", 40 * MEGABYTE)
    async with paired(reader_limit=1024) as pair:
        pair.stream.send([b"head", Stretch(tmp_path / "log", 0, 40 * MEGABYTE)])
        await _stalled(pair)
        peer = pair.writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        pair.writer.transport.abort()
        await until(lambda: pair.stream.gone)
        assert not pair.stream.failures


@on_loop
async def test_nothing_is_sent_after_an_abort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a closed socket may belong to somebody else by then."""
    _file(tmp_path / "log", 4 * MEGABYTE)
    async with paired() as pair:
        pair.stream.send([b"head", Stretch(tmp_path / "log", 0, 4 * MEGABYTE)])
        pair.stream.abort()
        monkeypatch.setattr(os, "sendfile", lambda *_: pytest.fail("a closed socket was written to"))
        pair.stream.resume_writing()
        await until(lambda: pair.stream.gone)
        assert not pair.stream.failures


@on_loop
async def test_closing_lets_a_file_leave_first(tmp_path: Path) -> None:
    data = _file(tmp_path / "log", 5 * MEGABYTE)
    async with paired() as pair:
        pair.stream.send([Stretch(tmp_path / "log", 0, 5 * MEGABYTE)])
        pair.stream.close()
        assert await pair.reader.read(-1) == data


@on_loop
async def test_a_file_that_the_kernel_cannot_send_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _file(tmp_path / "log", MEGABYTE)

    def refuse(*_: Any) -> int:
        raise OSError(errno.EINVAL, "not this file system")

    monkeypatch.setattr(os, "sendfile", refuse)
    async with paired() as pair:
        pair.stream.send([b"head", Stretch(tmp_path / "log", 0, MEGABYTE)])
        assert await _received(pair, MEGABYTE + 4) == b"head" + data


@on_loop
async def test_a_disk_that_fails_cuts_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _file(tmp_path / "log", MEGABYTE)

    def fail(*_: Any) -> int:
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(os, "sendfile", fail)
    async with paired() as pair:
        pair.stream.send([b"head", Stretch(tmp_path / "log", 0, MEGABYTE)])
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await pair.reader.readexactly(MEGABYTE)
        assert isinstance(pair.stream.failures[0], OSError)
