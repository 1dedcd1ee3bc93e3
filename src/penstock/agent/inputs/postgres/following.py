"""The log becomes portions, and what is safe of it is acknowledged to the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel
from penstock.agent.inputs.postgres.beginning import Begun
from penstock.agent.inputs.postgres.log.changes import LogReader, RowChange
from penstock.agent.inputs.postgres.log.lsn import LogPosition
from penstock.agent.inputs.postgres.log.wire import UNCHANGED, Relation, Values
from penstock.agent.inputs.postgres.portions import Gathered
from penstock.agent.inputs.postgres.position.progress import PostgresProgress
from penstock.agent.inputs.postgres.records.envelope import Envelopes, TableShape
from penstock.agent.inputs.postgres.server.catalog import Described, KnownTable, described
from penstock.agent.inputs.postgres.server.connecting import calling, driver
from penstock.agent.inputs.postgres.server.rows import value_now
from penstock.agent.inputs.postgres.server.stream import LogStream
from penstock.agent.inputs.postgres.settings import PostgresSettings
from penstock.agent.inputs.postgres.telling import PostgresCounts
from penstock.agent.portion import Origin

log = logging.getLogger("penstock.agent")

ACKNOWLEDGE_EVERY_S: Final = 1.0
"""Also a sign of life: a server ends connections that give none for a minute (wal_sender_timeout)."""
SLICE_MS: Final = 10.0
"""So long at a time messages are read; then it is the turn of others on the loop."""
EVENTS_MAX: Final = 2_000


@dataclass(slots=True)
class KnownRelation:
    """A table of the log: its columns as they were, its key as it is."""

    shape: TableShape
    described: Described


@dataclass(slots=True)
class LogFollower:
    """Of one connection."""

    settings: PostgresSettings
    channel: Channel
    env: Environment
    progress: PostgresProgress
    envelopes: Envelopes
    counts: PostgresCounts
    origin: Origin
    portion_bytes_max: int
    begun: Begun
    enough: Callable[[], bool]
    """Whether the log is to be left, between two transactions: there are tables to be read."""
    _relations: dict[int, KnownRelation] = field(default_factory=dict)
    _idle_ms: float = 0.0
    _left_out: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self._left_out = self.begun.left_out.oids

    async def follow(self, stream: LogStream) -> None:
        """Until there is enough."""
        position = self.progress.position
        await stream.start(self.settings.slot, self.settings.publication, position.restart)
        reader = LogReader(position)
        self.counts.following = True
        try:
            while not (reader.between and self.enough()):
                if await self._take(stream, reader):
                    # Others on the loop have their turn.
                    await asyncio.sleep(0)
                else:
                    self._say_idle(stream, reader)
                    await stream.wait(ACKNOWLEDGE_EVERY_S)
        finally:
            self.counts.following = False

    async def acknowledge(self, stream: LogStream) -> None:
        """Until it is cancelled: what is saved is told to the server, which may forget it then."""
        while True:
            if stream.streaming:
                stream.acknowledge(self.progress.copied.restart)
            await asyncio.sleep(ACKNOWLEDGE_EVERY_S)

    async def _take(self, stream: LogStream, reader: LogReader) -> bool:
        """Reads what is there, but not too much of it; whether there may be more."""
        gathered, position = Gathered(), None
        until_ms = self.env.monotonic_ms() + SLICE_MS
        more = True
        while gathered.bytes < self.portion_bytes_max and len(gathered) < EVENTS_MAX:
            message = stream.read()
            if message is None:
                more = False
                break
            gave = reader.feed(message.data, message.lsn)
            if gave.relation is not None:
                await self._learn(gave.relation, reader)
            for change in gave.changes:
                await self._gather(change, gathered)
            position = gave.position or position
            if self.env.monotonic_ms() >= until_ms:
                break
        if position is not None:
            await self._put(gathered, position)
        return more

    async def _put(self, gathered: Gathered, position: LogPosition) -> None:
        done = self.progress.reach(position)
        if not gathered.values:
            done()
            return
        self.counts.take(gathered)
        await self.channel.put(gathered.portion(self.origin), done)

    def _say_idle(self, stream: LogStream, reader: LogReader) -> None:
        """Now and then. The server's log grows by what happens elsewhere too, and must not be kept because of that."""
        now_ms = self.env.monotonic_ms()
        if not self.progress.settled or now_ms - self._idle_ms < self.settings.watch_ms:
            return
        self._idle_ms = now_ms
        position = reader.idle(stream.sent_up_to)
        if position is not None:
            self.progress.reach(position)()

    # Changes.

    async def _gather(self, change: RowChange, gathered: Gathered) -> None:
        relation = change.relation
        if not self.settings.wants(relation.name) or relation.oid in self._left_out:
            return
        known = self._relations[relation.oid]
        if change.old is not None and not change.whole and UNCHANGED in change.new:
            change = replace(change, new=await self._look_up(change.new, known))
        for event in self.envelopes.of_change(change, known.shape):
            gathered.add(event)

    async def _learn(self, relation: Relation, reader: LogReader) -> None:
        """The log says what a table's columns were, and the catalog which of them are its key, now."""
        table = KnownTable(relation.oid, relation.schema, relation.table, False)
        connection = self.begun.statements
        found = await calling(connection, lambda: described(connection, table))
        before = self._relations.get(relation.oid)
        self._relations[relation.oid] = KnownRelation(
            TableShape.of(relation, reader.types, found.keys), Described(relation, found.types, found.keys)
        )
        if before is not None:
            columns = ", ".join(column.name for column in relation.columns)
            log.info("input %s: %s is another now: %s", self.env.input, relation.name, columns)

    async def _look_up(self, new: Values, known: KnownRelation) -> Values:
        """Large values of a row whose key changed: the log does not have them, and nobody knows the new key yet.

        They are asked of the table. If the row has changed again since, the log tells of that too.
        """
        shape, connection = known.shape, self.begun.statements
        if not set(known.described.keys) <= set(shape.names):
            return new  # the key's columns have other names by now
        missing = [place for place, value in enumerate(new) if value is UNCHANGED]
        keys = [str(new[shape.names.index(name)]) for name in known.described.keys]
        names = [shape.names[place] for place in missing]
        row: Values | None = await _asked(connection, known.described, names, keys)
        if row is None:
            return new
        filled = list(new)
        for place, value in zip(missing, row, strict=True):
            filled[place] = value
        return tuple(filled)


async def _asked(connection: Any, table: Described, names: list[str], keys: list[str]) -> Values | None:
    """None also when the table is not what it was: then the log says so later."""

    def ask() -> Values | None:
        try:
            return value_now(connection, table, names, keys)
        except driver().ProgrammingError:
            return None

    return await calling(connection, ask)
