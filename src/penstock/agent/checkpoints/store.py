"""The database: opened when it is first asked, written by one thread, one transaction for all that changed."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from penstock.agent.checkpoints.row import Row
from penstock.agent.errors import AgentError

APPLICATION_ID: Final = 0x50454E53
"""Tells our databases from other people's; SQLite keeps it in the header."""
VERSION: Final = 1
BUSY_S: Final = 5.0
"""How long somebody else may have the file locked: who looks at it with the sqlite3 shell, say."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS positions (
    input TEXT NOT NULL, key BLOB NOT NULL, path BLOB NOT NULL, position INTEGER NOT NULL, facts TEXT NOT NULL,
    PRIMARY KEY (input, key)
) WITHOUT ROWID
"""

Result = TypeVar("Result")


class CheckpointsBroken(AgentError):
    """The file cannot be used as it is; somebody has to look at it. Trying again is of no use."""


class CheckpointsUnwritable(AgentError):
    """The disk is full or refuses, now. Nothing was changed; it may go well later."""


class Checkpoints:
    """Positions of all inputs of one agent. Calls may overlap; they are done one after another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints")
        self._failing_since_s: float | None = None

    @property
    def failing_s(self) -> float:
        """For how long positions could not be saved; 0 when the last try went well."""
        since_s = self._failing_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    async def open(self) -> None:
        """Makes the file if there is none. Everything else opens too; this is to find mistakes early."""
        await self._do(lambda _: None)

    async def load(self, input: str) -> list[Row]:
        return await self._do(lambda connection: _load(connection, input))

    async def save(self, input: str, rows: Iterable[Row], forgotten: Iterable[str] = ()) -> None:
        """Sets rows and removes others in one transaction, which is on the disk when this returns."""
        # Names of files are bytes, and not always UTF-8.
        values = [
            (input, os.fsencode(row.key), os.fsencode(row.path), row.position, json.dumps(row.facts)) for row in rows
        ]
        keys = [(input, os.fsencode(key)) for key in forgotten]
        try:
            await self._do(lambda connection: _save(connection, values, keys))
        except CheckpointsUnwritable:
            self._failing_since_s = self._failing_since_s or time.monotonic()
            raise
        self._failing_since_s = None

    async def forget(self, input: str, keys: Iterable[str] | None = None) -> None:
        """These of an input, or all that is known of it."""
        if keys is not None:
            await self.save(input, (), keys)
            return
        await self._do(lambda connection: _forget_input(connection, input))

    async def inputs(self) -> list[str]:
        """The inputs of which something is known: one that is no longer declared can be forgotten."""
        return await self._do(_inputs)

    async def close(self) -> None:
        """What is under way ends first. Afterwards the object is of no use."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._shut)
        self._thread.shutdown(wait=False)

    async def _do(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        task = asyncio.get_running_loop().run_in_executor(self._thread, self._guarded, work)
        # A caller that is cancelled goes; the transaction that the thread has begun ends all the same.
        return await asyncio.shield(task)

    def _guarded(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            return work(self._opened())
        except sqlite3.Error as error:
            raise self._in_words(error) from error
        except OSError as error:
            raise CheckpointsUnwritable(f"cannot make {self.path}: {error.strerror}") from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION_ID and (application or version or tables):
            raise CheckpointsBroken(
                f"{self.path} is a database of another program; give the agent a state_dir of its own"
            )
        if version > VERSION:
            raise CheckpointsBroken(
                f"{self.path} was written by a newer penstock (format {version}, this one knows {VERSION}); "
                "install that version, or give the agent another state_dir: it then reads its files anew"
            )
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL: a checkpoint that was saved is still there after a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 200")
        if application != APPLICATION_ID:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_SCHEMA)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        else:
            connection.execute("SELECT count(*) FROM positions WHERE input = ''")

    def _in_words(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            self._shut()
            return CheckpointsUnwritable(f"cannot write {self.path}: {error}; is the disk full?")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return CheckpointsUnwritable(f"{self.path} is locked: does another program have it open?")
        return CheckpointsBroken(
            f"{self.path} is broken: {error}; move it away, and the agent reads its files anew (from the beginning, "
            "which sends again what was sent before, or from where `from` says)"
        )

    def _shut(self) -> None:
        """After a failure too: what a connection still holds of a failed transaction goes with it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _load(connection: sqlite3.Connection, input: str) -> list[Row]:
    found = connection.execute(
        "SELECT key, path, position, facts FROM positions WHERE input = ? ORDER BY key", (input,)
    )
    return [
        Row(os.fsdecode(key), os.fsdecode(path), position, json.loads(facts)) for key, path, position, facts in found
    ]


def _save(
    connection: sqlite3.Connection, values: list[tuple[str, bytes, bytes, int, str]], keys: list[tuple[str, bytes]]
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany("INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?)", values)
        connection.executemany("DELETE FROM positions WHERE input = ? AND key = ?", keys)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _forget_input(connection: sqlite3.Connection, input: str) -> None:
    connection.execute("DELETE FROM positions WHERE input = ?", (input,))


def _inputs(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT DISTINCT input FROM positions ORDER BY input")]
