"""Positions of the log and of the tables that are read at the beginning; saved, or handed to transactions.

Rows are keyed by the slot: another slot begins anew. That of the log is `SLOT log`, with the server it is of; that of
a table is `SLOT table SCHEMA.TABLE`, with the last key that was read of it, or that all of it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.agent.checkpoints import Change, CheckpointsUnwritable, Row
from penstock.agent.environment import Environment
from penstock.agent.inputs.files.ledger import Ledger, Span
from penstock.agent.inputs.files.troubles import Troubles
from penstock.agent.inputs.postgres.log.lsn import LogPosition
from penstock.agent.inputs.postgres.server.connecting import PostgresFailed

EVERY_S: Final = 0.2
RETRY_S: Final = 1.0
LAST_WITHIN_S: Final = 5.0
SUBJECT: Final = "checkpoints"


@dataclass(frozen=True, slots=True)
class TableMark:
    """How far a table was read."""

    after: tuple[str, ...] | None = None
    """The key of the last row; None: none of them, or they have none."""
    done: bool = False


@dataclass(slots=True)
class TableReading:
    """A table that is read at the beginning, or was."""

    name: str
    oid: int
    ledger: Ledger[TableMark] = field(init=False)
    moved: Callable[[TableReading], None] = field(repr=False)

    def begin(self, rows: int, mark: TableMark) -> Span[TableMark]:
        return self.ledger.begin(self.ledger.end + rows, mark)

    @property
    def done(self) -> bool:
        """All of it is put, perhaps not yet safe."""
        return self.ledger.last.done


class PostgresProgress:
    """Of one input."""

    def __init__(self, env: Environment, slot: str, troubles: Troubles) -> None:
        self._env, self._slot, self._troubles = env, slot, troubles
        self.server: tuple[str, str] | None = None
        """System and database that the positions are of."""
        self.saved = LogPosition()
        """What a crash leaves."""
        self.copied = LogPosition()
        """The same of this machine alone: whoever gives `exactly_once` up goes on from there."""
        self.tables: dict[str, TableReading] = {}
        self._log: Ledger[LogPosition] | None = None
        self._events = 0
        self._dirty: dict[str, None] = {}
        self._forgotten: set[str] = set()
        self._busy = asyncio.Lock()
        self._loaded = False

    # What the input does.

    async def load(self) -> None:
        env = self._env
        if env.positions is not None:
            env.positions.attach(env.input, self)
        for row in await (env.positions or env.checkpoints).load(env.input):
            try:
                self._restore(row)
            except (KeyError, TypeError, ValueError):
                raise PostgresFailed(
                    f"what is saved of input {env.input} makes no sense ({row.key}): give the input another name for"
                    " its slot, and all tables are read anew"
                ) from None
        self._loaded = True

    @property
    def began(self) -> bool:
        """Whether an earlier life has read of this slot."""
        return self._log is not None

    def begin(self, at: int, server: tuple[str, str]) -> None:
        """A slot without a position: its log is read from here on."""
        self.server = server
        self._start(LogPosition(at, 0, at))
        self._dirty[self._log_key] = None

    def reach(self, position: LogPosition) -> Span[LogPosition]:
        """What comes before is under way; call what is returned when it is done."""
        assert self._log is not None, "begun, or restored"
        self._events += 1
        return self._log.begin(self._events, position)

    @property
    def position(self) -> LogPosition:
        """Up to where all is put; where the log goes on."""
        assert self._log is not None, "begun, or restored"
        return self._log.last

    @property
    def settled(self) -> bool:
        return self._log is not None and not self._log.open_spans

    def table(self, name: str, oid: int) -> TableReading:
        """What is known of a table; one that was made anew is another."""
        reading = self.tables.get(name)
        if reading is None or reading.oid != oid:
            reading = self.tables[name] = self._reading(name, oid, 0, TableMark())
        return reading

    def forget(self, names: Iterable[str]) -> bool:
        """Tables that are not followed now: when they are again, they are read anew. Whether any was known."""
        known = [name for name in names if self.tables.pop(name, None) is not None]
        for name in known:
            self._dirty.pop(self._table_key(name), None)
            self._forgotten.add(self._table_key(name))
        return bool(known)

    async def keep(self) -> bool:
        """Waits until all of now is saved, or committed; False when it will not be."""
        positions = self._env.positions
        if positions is None:
            return await self.save()
        await positions.save(self._env.input)
        return not self.pending

    async def keep_saving(self) -> None:
        """Until it is cancelled."""
        while True:
            saved = self._env.positions is not None or await self.save()
            await asyncio.sleep(EVERY_S if saved else RETRY_S)

    async def save(self) -> bool:
        """False when the disk refused."""
        async with self._busy:
            if not self.pending:
                return True
            change = self.take()
            try:
                await self._env.checkpoints.save(self._env.input, change.rows, change.forgotten)
            except BaseException as error:
                change.aborted()
                if isinstance(error, CheckpointsUnwritable):
                    self._troubles.tell(SUBJECT, f"{error}; positions are kept in memory and tried again")
                    return False
                raise
            change.committed()
            change.copied()
            self._troubles.well(SUBJECT)
            return True

    async def close(self) -> None:
        env = self._env
        if env.positions is None:
            await self.save()
            return
        await env.positions.save(env.input, LAST_WITHIN_S)
        env.positions.detach(env.input, self)

    # What transactions ask.

    @property
    def pending(self) -> bool:
        return self._loaded and bool(self._dirty or self._forgotten)

    def take(self) -> Change:
        dirty, self._dirty = self._dirty, {}
        # What was begun anew since is not to be forgotten.
        forgotten, self._forgotten = self._forgotten - dirty.keys(), set()
        position = None if self._log is None or self._log_key not in dirty else self._log.outlook[1]

        def committed() -> None:
            if position is not None:
                self.saved = max(self.saved, position)

        def copied() -> None:
            if position is not None:
                self.copied = max(self.copied, position)

        def aborted() -> None:
            self._dirty = {key: None for key in dirty if key not in self._forgotten} | self._dirty
            self._forgotten |= forgotten - self._dirty.keys()

        return Change([self._row(key) for key in dirty], sorted(forgotten), committed, aborted, copied)

    # Rows.

    @property
    def _log_key(self) -> str:
        return f"{self._slot} log"

    def _table_key(self, name: str) -> str:
        return f"{self._slot} table {name}"

    def _row(self, key: str) -> Row:
        if key == self._log_key:
            assert self._log is not None, "only what was begun is dirty"
            assert self.server is not None, "it was begun with its server"
            _, position, _ = self._log.outlook
            system, database = self.server
            facts: dict[str, Any] = {"commit": position.commit, "changes": position.changes}
            return Row(key, self._slot, position.restart, facts | {"system": system, "database": database})
        reading = self.tables[key.removeprefix(f"{self._slot} table ")]
        rows, mark, _ = reading.ledger.outlook
        after = None if mark.after is None else list(mark.after)
        return Row(key, reading.name, rows, {"oid": reading.oid, "after": after, "done": mark.done})

    def _restore(self, row: Row) -> None:
        slot, kind, *_ = row.key.split(" ", 2)
        if slot != self._slot:
            self._forgotten.add(row.key)
        elif kind == "log":
            self.server = (row.facts["system"], row.facts["database"])
            self._start(LogPosition(row.facts["commit"], row.facts["changes"], row.position))
            self.saved = self.position
        else:
            after: Sequence[str] | None = row.facts["after"]
            mark = TableMark(None if after is None else tuple(after), row.facts["done"])
            self.tables[row.path] = self._reading(row.path, row.facts["oid"], row.position, mark)

    def _start(self, position: LogPosition) -> None:
        self._log = Ledger(0, position, self._log_moved)

    def _log_moved(self) -> None:
        if self._log is not None and self._log.untold:
            self._dirty[self._log_key] = None

    def _reading(self, name: str, oid: int, rows: int, mark: TableMark) -> TableReading:
        reading = TableReading(name, oid, self._table_moved)
        reading.ledger = Ledger(rows, mark, lambda: reading.moved(reading))
        return reading

    def _table_moved(self, reading: TableReading) -> None:
        if reading.ledger.untold and self.tables.get(reading.name) is reading:
            self._dirty[self._table_key(reading.name)] = None
