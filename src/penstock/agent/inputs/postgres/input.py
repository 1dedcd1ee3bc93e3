"""The input: begin, read tables, follow the log; again from the top when other tables are to be followed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from penstock.agent.environment import Environment
from penstock.agent.inputs.files.jobs import Jobs
from penstock.agent.inputs.files.troubles import Troubles
from penstock.agent.inputs.input import Channel, InputStatus, SlotStatus
from penstock.agent.inputs.postgres.beginning import Begun, begin
from penstock.agent.inputs.postgres.following import LogFollower
from penstock.agent.inputs.postgres.left_out import leave_out, wanted
from penstock.agent.inputs.postgres.position.progress import PostgresProgress
from penstock.agent.inputs.postgres.records.envelope import Envelopes
from penstock.agent.inputs.postgres.server.catalog import slot_now, tables_of
from penstock.agent.inputs.postgres.server.connecting import PostgresFailed, calling
from penstock.agent.inputs.postgres.server.making import usable_slot
from penstock.agent.inputs.postgres.server.stream import LogStream
from penstock.agent.inputs.postgres.settings import PostgresSettings
from penstock.agent.inputs.postgres.tables import TableReader
from penstock.agent.inputs.postgres.telling import PostgresCounts

SUBJECT: Final = "tables"


class PostgresInput:
    """Follows a database. See the package."""

    def __init__(self, settings: PostgresSettings, channel: Channel, env: Environment) -> None:
        self.settings, self._channel, self._env = settings, channel, env
        self._troubles = Troubles(env.input)
        self._progress = PostgresProgress(env, settings.slot, self._troubles)
        self._counts = PostgresCounts()
        self._jobs = Jobs()
        self._stopping = False
        self._stream: LogStream | None = None
        self._new_tables = False
        # Portions are well below what all inputs may hold.
        self._portion_bytes_max = min(settings.portion_bytes_max, env.bounded_memory_bytes // 16)

    async def run(self) -> None:
        if not self._stopping:
            await self._jobs.run(self._work(), self._progress.keep_saving())

    async def stop(self) -> None:
        self._stopping = True
        await self._jobs.end()

    async def close(self) -> None:
        self._stopping = True
        await self._jobs.end()
        await self._progress.close()
        self._end_stream()

    async def _work(self) -> None:
        await self._progress.load()
        while True:
            self._end_stream()
            self._new_tables = False
            begun = await begin(self.settings, self._progress)
            try:
                self._counts.tables, self._counts.left_out = len(begun.tables), len(begun.left_out.tables)
                self._tell_left_out(begun)
                await _until_one_ends(self._follow(begun), self._watch(begun))
            finally:
                begun.statements.close()
                if self._stream is None:
                    begun.log.close()

    async def _follow(self, begun: Begun) -> None:
        parts: dict[str, Any] = {
            "settings": self.settings,
            "channel": self._channel,
            "env": self._env,
            "progress": self._progress,
            "envelopes": Envelopes(
                self.settings.server, begun.server[1], self.settings.tombstones, now_ms=self._env.now_ms
            ),
            "counts": self._counts,
            "origin": self._channel.origin(peer=_peer(begun.statements)),
            "portion_bytes_max": self._portion_bytes_max,
        }
        await TableReader(**parts).read(begun)
        follower = LogFollower(**parts, begun=begun, enough=lambda: self._new_tables)
        self._stream = stream = LogStream(begun.log)
        await _until_one_ends(follower.follow(stream), follower.acknowledge(stream))

    async def _watch(self, begun: Begun) -> None:
        """Looks at the slot and for new tables, until it is cancelled."""
        connection, slot = begun.statements, self.settings.slot
        while True:
            self._counts.slot = await calling(connection, lambda: slot_now(connection, slot))
            await calling(connection, lambda: usable_slot(connection, slot, begun.server[1]))
            there = await calling(connection, lambda: tables_of(connection))
            tables, bare = wanted(self.settings, there)
            now = {table.name: table.oid for table in tables}
            self._new_tables = bool(now.items() - begun.known.items()) or bare != begun.left_out.tables
            if lost := tuple(table for table in bare if table.oid in begun.known.values()):
                # Its owner cannot wait until all the others were read.
                await calling(connection, partial(leave_out, connection, self.settings, lost))
            await asyncio.sleep(self.settings.watch_ms / 1000)

    def _tell_left_out(self, begun: Begun) -> None:
        if words := begun.left_out.words():
            self._troubles.tell(SUBJECT, words)
        else:
            self._troubles.well(SUBJECT)

    def _end_stream(self) -> None:
        """With a last word of what is safe, as far as the server is still there."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            if stream.streaming:
                stream.acknowledge(self._progress.copied.restart)
        except PostgresFailed:
            pass  # it learns of that at the next start
        finally:
            stream.close()

    def status(self, *, details: bool = False) -> InputStatus:
        counts, slot = self._counts, self._counts.slot
        return InputStatus(
            kind="postgres",
            words=counts.words(self.settings.slot),
            events=counts.events,
            bytes=counts.bytes,
            connections=int(self._stream is not None),
            behind_bytes=0 if slot is None else slot.lag_bytes,
            errors=self._troubles.count,
            last_error=self._troubles.last,
            tables_left_out=counts.left_out,
            slot=None
            if slot is None
            else SlotStatus(self.settings.slot, slot.active, slot.lag_bytes, slot.kept_bytes, slot.wal_status),
        )


def _peer(connection: Any) -> str:
    """Where the server is, without who asks and the password."""
    info = connection.info
    return f"{info.host or 'localhost'}:{info.port}/{info.dbname}"


async def _until_one_ends(*jobs: Coroutine[Any, Any, None]) -> None:
    """The first that ends ends all; what it raised is raised."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
