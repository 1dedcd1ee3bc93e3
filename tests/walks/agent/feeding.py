"""An input whose events come from the test. It is declared as `type = "feed"`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel, Input, InputStatus
from penstock.agent.portion import Portion
from penstock.declared.fields import Table

FEEDS: dict[str, Feed] = {}
"""The newest of each name."""


@dataclass(frozen=True, slots=True)
class FeedSettings:
    fails: int = 0
    """So many of its lives end at once with an error."""
    ends: bool = False


def read(table: Table, folder: Path) -> FeedSettings:
    return FeedSettings(table.integer("fails", 0, 0, 100), table.flag("ends"))


def make(settings: FeedSettings, channel: Channel, env: Environment) -> Input:
    before = FEEDS.get(env.input)
    feed = FEEDS[env.input] = Feed(settings, channel)
    feed.lives = 1 if before is None else before.lives + 1
    return feed


class Feed:
    """Hands on what the test gives it, and keeps account of what is done."""

    def __init__(self, settings: FeedSettings, channel: Channel) -> None:
        self.settings, self.channel = settings, channel
        self.lives = 1
        self.put_count = 0
        self.done: list[int] = []
        """Numbers of portions, in the order in which they were done."""
        self.closed = False
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        if self.lives <= self.settings.fails:
            raise OSError("the source is not there")
        if self.settings.ends:
            return
        await self._stopping.wait()

    async def stop(self) -> None:
        self._stopping.set()

    async def close(self) -> None:
        self.closed = True

    def status(self, *, details: bool = False) -> InputStatus:
        return InputStatus(kind="feed", events=self.put_count)

    def portion(self, values: list[bytes]) -> Portion:
        return Portion(self.channel.origin(path="/the/file"), values)

    async def put(self, values: list[bytes]) -> None:
        number, self.put_count = self.put_count, self.put_count + 1
        await self.channel.put(self.portion(values), lambda: self.done.append(number))

    def offer(self, values: list[bytes]) -> bool:
        number = self.put_count
        taken = self.channel.offer(self.portion(values), lambda: self.done.append(number))
        self.put_count += taken
        return taken

    @property
    def all_done(self) -> bool:
        return len(self.done) == self.put_count
