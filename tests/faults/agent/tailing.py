"""A tail or a spool directory without an agent: its events are recorded, and acknowledged when the test says so.

In transactions (`transacting`) events count when they are committed, together with the positions behind them; some
transactions are aborted on the way, and a kill loses what is open.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.agent.checkpoints import Checkpoints, Row
from penstock.agent.environment import Environment
from penstock.agent.exactly.beginning import Begins
from penstock.agent.exactly.positions import Positions
from penstock.agent.exactly.rows import Found
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
    open_portions: list[tuple[Portion, Done]] = field(default_factory=list)
    """Put, and not committed."""

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
        if TRANSACTING:
            self.open_portions.append((portion, done))
            return
        self.portions.append(portion)
        if self.acknowledging:
            asyncio.get_running_loop().call_soon(done)
        else:
            self.dones.append(done)

    # Transactions.

    def stage(self) -> list[tuple[Portion, Done]]:
        """What is in the transaction that is about to end."""
        for _, done in self.open_portions:
            done.stage()  # type: ignore[attr-defined]  # a ledger's span
        return list(self.open_portions)

    def commit(self, staged: list[tuple[Portion, Done]]) -> None:
        del self.open_portions[: len(staged)]
        self.portions += [portion for portion, _ in staged]
        for _, done in staged:
            done()

    def abort(self, staged: list[tuple[Portion, Done]]) -> None:
        for _, done in staged:
            done.unstage()  # type: ignore[attr-defined]

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


TRANSACTING: list[bool] = []
"""Not empty while inputs are tried with exactly_once."""

TOPICS: dict[Path, dict[str, dict[str, Row]]] = {}
"""By state: the committed rows of its inputs."""


@contextmanager
def transacting() -> Iterator[None]:
    """Inputs that are started meanwhile have their positions in transactions."""
    TRANSACTING.append(True)
    try:
        yield
    finally:
        TRANSACTING.clear()
        TOPICS.clear()


class Committer:
    """The loop of transactions, without brokers: lines and positions are committed in one step, or not at all."""

    def __init__(self, positions: Positions, channel: Recording, topic: dict[str, dict[str, Row]]) -> None:
        self.positions, self._channel, self._topic = positions, channel, topic
        self._chance = random.Random(1)
        self._wanted = asyncio.Event()
        positions.hurry = self._wanted.set
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        rows = {name: dict(known) for name, known in self._topic.items()}
        await self.positions.begin(Found(rows=rows), Begins.TOPIC)
        self.positions.opened()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.003):
                    await self._wanted.wait()
            self._wanted.clear()
            self.end_transaction(commits=self._chance.random() < 0.8)

    def end_transaction(self, *, commits: bool) -> None:
        staged = self._channel.stage()
        changes = self.positions.take()
        if not commits:
            self._channel.abort(staged)
            self.positions.abort(changes)
            return
        for name, change in changes.items():
            known = self._topic.setdefault(name, {})
            known.update({row.key: row for row in change.rows})
            for key in change.forgotten:
                known.pop(key, None)
        self.positions.commit(changes)
        self._channel.commit(staged)

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        if not self.task.cancelled():
            self.task.result()


class Life:
    """One run of an input, from start to stop or to the kill."""

    def __init__(
        self, input: Input, checkpoints: Checkpoints, channel: Recording, committer: Committer | None = None
    ) -> None:
        self.input, self.checkpoints, self.channel, self._committer = input, checkpoints, channel, committer
        self.task = asyncio.create_task(input.run())

    async def all_read(self) -> None:
        """Until everything that is written is put and acknowledged, and that is noticed."""
        assert isinstance(self.input, TailInput)
        await until(lambda: self.input.status().behind_bytes == 0)

    async def kill(self) -> None:
        """Nothing more is read, acknowledged or saved, as after kill -9."""
        self.channel.acknowledging = False
        if self._committer is not None:
            await self._committer.end()
            self.channel.open_portions.clear()
        await self.input.stop()
        await self.checkpoints.close()

    async def end(self) -> None:
        await self.input.stop()
        await self.task
        if self._committer is not None and not self._committer.task.done():
            self._committer.end_transaction(commits=True)
        await self.input.close()
        if self._committer is not None:
            await self._committer.end()
        await self.checkpoints.close()


def environment(folder: Path, checkpoints: Checkpoints, **changes: Any) -> Environment:
    return Environment("agent", "host", folder, "in", checkpoints, **changes)


def start_tail(paths: Path | str, state: Path, channel: Recording, **settings: Any) -> Life:
    clock = settings.pop("clock", {})
    checkpoints = Checkpoints(state / "positions.db")
    given = paths if isinstance(paths, tuple) else (str(paths),)
    positions = Positions(checkpoints, lambda _words: None) if TRANSACTING else None
    committer = None if positions is None else Committer(positions, channel, TOPICS.setdefault(state, {}))
    env = environment(state, checkpoints, positions=positions, **clock)
    input = TailInput(TailSettings(paths=given, **(QUICK | settings)), channel, env)
    return Life(input, checkpoints, channel, committer)


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
