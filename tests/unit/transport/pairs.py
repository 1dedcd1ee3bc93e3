"""A loop per test, and loopback connections between a stream under test and a plain socket."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import uvloop

from penstock.transport.intake import Intake
from penstock.transport.net import AsyncioNet
from penstock.transport.stream import FrameStream
from tests.patience import until


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Recorder(FrameStream):
    """Keeps what it is told. `finishes` says what it answers to `frame`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, intake: Intake, frame_bytes_max: int) -> None:
        super().__init__(loop, intake, frame_bytes_max)
        self.frames: list[bytearray] = []
        self.finishes: Callable[[Recorder, bytearray], bool] = lambda _stream, _frame: True
        self.refusals: list[str] = []
        self.failures: list[Exception] = []
        self.drained_count = 0
        self.gone = False

    def frame(self, frame: bytearray) -> bool:
        self.frames.append(frame)
        return self.finishes(self, frame)

    def refused(self, why: str) -> None:
        self.refusals.append(why)

    def failed(self, why: str, cause: Exception) -> None:
        self.failures.append(cause)

    def drained(self) -> None:
        self.drained_count += 1

    def lost(self, cause: Exception | None) -> None:
        self.gone = True


class Pair:
    """A stream under test on one end, asyncio's own reader and writer on the other."""

    def __init__(self, stream: Recorder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.stream = stream
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


@contextlib.asynccontextmanager
async def paired(
    *, budget_bytes: int = -1, frame_bytes_max: int = 1 << 20, intake: Intake | None = None, reader_limit: int = 1 << 16
) -> AsyncIterator[Pair]:
    loop = asyncio.get_running_loop()
    intake = intake or Intake(loop, budget_bytes=budget_bytes)
    made: list[Recorder] = []

    def accept() -> Recorder:
        made.append(Recorder(loop, intake, frame_bytes_max))
        return made[0]

    listening = await AsyncioNet(loop).listen("127.0.0.1", 0, accept)
    reader, writer = await asyncio.open_connection("127.0.0.1", listening.port, limit=reader_limit)
    await until(lambda: made and made[0].transport is not None)
    try:
        yield Pair(made[0], reader, writer)
    finally:
        listening.close()
        writer.close()
        made[0].abort()
        await until(lambda: made[0].gone)
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an async test to its end on a fresh uvloop."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(test(*args, **named))

    return run
