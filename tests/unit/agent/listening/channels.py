"""A channel that tests fill, empty and acknowledge by hand, and what else the network inputs need around them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import tomllib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, cast

import uvloop

from penstock.agent.checkpoints import Checkpoints
from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Done, Input
from penstock.agent.portion import Origin, Portion
from penstock.declared.fields import Notes, Table
from penstock.declared.positions import Positions
from tests.patience import until, within

DEADLINE_S = 10.0


class HandChannel:
    """Takes portions while `open`. With `forgetful` it keeps counts only, as a soak needs it."""

    def __init__(self, *, open: bool = True, acknowledging: bool = True, forgetful: bool = False) -> None:
        self.portions: list[Portion] = []
        self.dones: list[Done] = []
        self.events = 0
        self._acknowledging, self._forgetful = acknowledging, forgetful
        self._opened = asyncio.Event()
        if open:
            self._opened.set()

    def origin(self, *, path: str = "", peer: str = "") -> Origin:
        return Origin("in", "here", path, peer)

    async def put(self, portion: Portion, done: Done) -> None:
        await self._opened.wait()
        self._take(portion, done)

    def offer(self, portion: Portion, done: Done) -> bool:
        if self._opened.is_set():
            self._take(portion, done)
        return self._opened.is_set()

    @property
    def roomy(self) -> bool:
        return self._opened.is_set()

    def open(self) -> None:
        self._opened.set()

    def close(self) -> None:
        self._opened.clear()

    def acknowledge(self) -> None:
        for done in self.dones:
            done()
        self.dones.clear()

    @property
    def values(self) -> list[bytes]:
        return [value for portion in self.portions for value in portion.values]

    @property
    def fields(self) -> list[dict[str, Any]]:
        return [each for portion in self.portions for each in portion.fields or []]

    @property
    def marks(self) -> list[str]:
        return [portion.marks.get(at, "") for portion in self.portions for at in range(len(portion.values))]

    def _take(self, portion: Portion, done: Done) -> None:
        for listed in (portion.fields, portion.timestamps_ms):
            assert listed is None or len(listed) == len(portion.values), "one for each event"
        assert all(0 <= at < len(portion.values) for at in portion.marks)
        self.events += len(portion.values)
        if not self._forgetful:
            self.portions.append(portion)
        if self._acknowledging:
            # Never inside the call that hands it on.
            asyncio.get_running_loop().call_soon(done)
        else:
            self.dones.append(done)


def environment(memory_bytes: int = 64 << 20, **changes: Any) -> Environment:
    given: dict[str, Any] = {"checkpoints": cast(Checkpoints, None), "bounded_memory_bytes": memory_bytes, **changes}
    return Environment("agent", "here", Path(), "in", **given)


def read_table(text: str, read: Callable[[Table, Path], Any], folder: Path | None = None) -> tuple[Any, list[str]]:
    """The settings in a text of TOML, and what is wrong with it."""
    notes = Notes(Positions(text))
    table = Table(tomllib.loads(text), (), notes, "inputs.in")
    table.value("type")
    settings = read(table, folder or Path())
    table.finish()
    return settings, [mistake.words for mistake in notes.mistakes]


@contextlib.asynccontextmanager
async def running(made: Input) -> AsyncIterator[asyncio.Task[None]]:
    """Runs an input until it listens, and ends it in order."""
    task = asyncio.create_task(made.run())
    try:
        await until(lambda: task.done() or made.status().words != "starting")
        if task.done():
            task.result()
        yield task
    finally:
        await made.stop()
        await made.close()
        async with asyncio.timeout(within(DEADLINE_S)):
            await asyncio.wait((task,))
    task.result()


def port_of(made: Any, scheme: str = "") -> int:
    """Of the first address with that scheme."""
    return next(address.port for address in made.addresses if address.scheme.startswith(scheme))


@contextlib.contextmanager
def no_errors_logged() -> Iterator[list[logging.LogRecord]]:
    """Fails if anybody logs an error or an exception."""
    caught: list[logging.LogRecord] = []

    class Catching(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            caught.append(record)

    handler = Catching(logging.WARNING)
    logging.getLogger().addHandler(handler)
    try:
        yield caught
    finally:
        logging.getLogger().removeHandler(handler)
    wrong = [record.getMessage() for record in caught if record.levelno >= logging.ERROR or record.exc_info]
    assert not wrong, wrong


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an async test to its end on a fresh uvloop; an exception that nobody caught fails it."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        unhandled: list[dict[str, Any]] = []
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.get_loop().set_exception_handler(lambda _, context: unhandled.append(context))
            runner.run(test(*args, **named))
        assert not unhandled, unhandled

    return run
