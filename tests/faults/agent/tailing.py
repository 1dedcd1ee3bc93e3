"""A tail or a spool directory without an agent: its events are recorded, and acknowledged when the test says so."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.agent.checkpoints import Checkpoints
from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Done, Input
from penstock.agent.inputs.tail.input import TailInput
from penstock.agent.inputs.tail.settings import TailSettings
from penstock.agent.portion import Origin, Portion
from tests.patience import until

QUICK: dict[str, Any] = {"poll_min_ms": 2, "poll_max_ms": 20, "discover_ms": 10, "rotate_wait_ms": 60}


@dataclass
class Recording:
    """A channel. Everything that was put, in order."""

    acknowledging: bool = True
    open: bool = True
    """When it is not, there is no room."""
    portions: list[Portion] = field(default_factory=list)
    dones: list[Done] = field(default_factory=list)
    """Those that were not called."""

    @property
    def roomy(self) -> bool:
        return self.open

    def origin(self, *, path: str = "", peer: str = "") -> Origin:
        return Origin("in", "host", path, peer)

    async def put(self, portion: Portion, done: Done) -> None:
        while not self.open:
            await asyncio.sleep(0.001)
        self._take(portion, done)

    def offer(self, portion: Portion, done: Done) -> bool:
        if self.open:
            self._take(portion, done)
        return self.open

    def _take(self, portion: Portion, done: Done) -> None:
        assert portion.positions is None or len(portion.positions) == len(portion.values)
        self.portions.append(portion)
        if self.acknowledging:
            asyncio.get_running_loop().call_soon(done)
        else:
            self.dones.append(done)

    def acknowledge(self) -> None:
        for done in self.dones:
            done()
        self.dones.clear()

    @property
    def count(self) -> int:
        return sum(len(portion.values) for portion in self.portions)

    @property
    def lines(self) -> list[bytes]:
        return [value for portion in self.portions for value in portion.values]

    @property
    def counts(self) -> Counter[bytes]:
        return Counter(self.lines)

    async def wait_for(self, *lines: bytes) -> None:
        """Until each of these has come at least once."""
        missing, looked_at = set(lines), 0

        def all_here() -> bool:
            nonlocal looked_at
            for portion in self.portions[looked_at:]:
                missing.difference_update(portion.values)
            looked_at = len(self.portions)
            return not missing

        await until(all_here, lambda: f"{len(missing)} are missing: {sorted(missing)[:5]}")


class Life:
    """One run of an input, from start to stop or to the kill."""

    def __init__(self, input: Input, checkpoints: Checkpoints, channel: Recording) -> None:
        self.input, self.checkpoints, self.channel = input, checkpoints, channel
        self.task = asyncio.create_task(input.run())

    async def all_read(self) -> None:
        """Until everything that is written is put and acknowledged, and that is noticed."""
        assert isinstance(self.input, TailInput)
        await until(lambda: self.input.status().behind_bytes == 0)

    async def kill(self) -> None:
        """Nothing more is read, acknowledged or saved, as after kill -9."""
        self.channel.acknowledging = False
        await self.input.stop()
        await self.checkpoints.close()

    async def end(self) -> None:
        await self.input.stop()
        await self.task
        await self.input.close()
        await self.checkpoints.close()


def environment(folder: Path, checkpoints: Checkpoints, **changes: Any) -> Environment:
    return Environment("agent", "host", folder, "in", checkpoints, **changes)


def start_tail(paths: Path | str, state: Path, channel: Recording, **settings: Any) -> Life:
    clock = settings.pop("clock", {})
    checkpoints = Checkpoints(state / "positions.db")
    given = paths if isinstance(paths, tuple) else (str(paths),)
    env = environment(state, checkpoints, **clock)
    return Life(TailInput(TailSettings(paths=given, **(QUICK | settings)), channel, env), checkpoints, channel)


@asynccontextmanager
async def tailing(
    paths: Path | str, state: Path, channel: Recording | None = None, **settings: Any
) -> AsyncIterator[Life]:
    life = start_tail(paths, state, channel or Recording(), **settings)
    try:
        yield life
        assert not life.task.done() or life.task.exception() is None
    finally:
        if life.task.done() and not life.task.cancelled() and life.task.exception():
            raise life.task.exception()  # type: ignore[misc]  # it was looked at in the line before
        await life.end()


def numbered(name: str, first: int, count: int, width: int = 40) -> list[bytes]:
    """Lines of which no two are equal."""
    return [b"%s %06d " % (name.encode(), number) + b"." * width for number in range(first, first + count)]


def append(path: Path, lines: list[bytes]) -> None:
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))
