"""Writes the offset checkpoints of a running node, one at a time, and lets logs depart that are going.

A log that goes is out of service at once. Its directory keeps the partition's name until the checkpoints of its log
directory were written without it and synced: what they say would else be taken for the next topic of that name. All
that go meanwhile are in the next round, so a thousand deletions cost a few rounds. One follows another after a moment,
unless somebody waits for a name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import StorageFailed
from penstock.server.loops.duty import duty
from penstock.server.loops.slices import in_slices
from penstock.storage.checkpointing import OFFSET_TOLD, TELLS_OF_FUTURES, line_of
from penstock.storage.log_directory import CheckpointWrite

if TYPE_CHECKING:
    from penstock.model.ids import Offset, TopicPartition
    from penstock.model.ports import Clock, Offload
    from penstock.storage.log import Log
    from penstock.storage.log_directory import LogDirectory
    from penstock.storage.store import LogStore

BETWEEN_ROUNDS_MS: Final = 200


class CheckpointDriver:
    """Nobody else writes an offset checkpoint between opening and closing the store."""

    def __init__(
        self,
        store: LogStore,
        clock: Clock,
        offload: Offload,
        *,
        storage_failed: Callable[[StorageFailed], None],
        at_rest: Callable[[Log], Awaitable[None]],
    ) -> None:
        self._store, self._clock, self._offload = store, clock, offload
        self._storage_failed, self._at_rest = storage_failed, at_rest
        self._writing = asyncio.Lock()
        self._running: asyncio.Future[None] | None = None
        self._departing: asyncio.Task[None] | None = None
        self._round_over: asyncio.Future[None] | None = None
        self._hurried = asyncio.Event()
        self.writes = self.rounds = 0

    # -- writing

    async def write(self, *checkpoints: str) -> None:
        """Writes these checkpoints of every directory; they are on disk when this returns."""
        async with self._writing:
            for checkpoint in checkpoints:
                await self._write(checkpoint, [each for each in self._store.directories if each.online])

    async def _write(self, checkpoint: str, directories: list[LogDirectory]) -> None:
        """One offset for each log into the checkpoint of its directory; None is left out.

        The lines are made a few milliseconds at a time. A log that went meanwhile is not in it, nor an offset that
        fell.
        """
        store, offset_told = self._store, OFFSET_TOLD[checkpoint]
        tables = [store.logs, store.futures] if checkpoint in TELLS_OF_FUTURES else [store.logs]
        lines: dict[Log, tuple[Offset, str]] = {}

        def visit(target: Log) -> None:
            offset = offset_told(target)
            if offset is not None:
                lines[target] = offset, line_of(target, offset)

        await in_slices(self._clock, [target for table in tables for target in table.values()], visit)
        entries: dict[LogDirectory, dict[TopicPartition, str]] = {each: {} for each in directories}
        for table in tables:
            for target in table.values():
                home, now = store.directory_of(target), offset_told(target)
                if target not in lines or home not in entries or now is None:
                    continue
                told, line = lines[target]
                entries[home][target.name] = line if now >= told else line_of(target, now)
        for write in [CheckpointWrite(directory, checkpoint, found.items()) for directory, found in entries.items()]:
            await self._sync(write)

    async def _sync(self, write: CheckpointWrite) -> None:
        await self._written()
        if not write.directory.online:
            return
        self.writes += 1
        self._running = asyncio.ensure_future(self._offload.call(write.sync))
        self._running.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            # Whoever wanted it may be stopped; a thread goes on all the same.
            await asyncio.shield(self._running)
        except OSError as error:
            self._storage_failed(StorageFailed(write.path, f"a checkpoint cannot be written: {error}"))

    async def _written(self) -> None:
        """Returns when no thread writes a checkpoint."""
        if self._running is not None and not self._running.done():
            await asyncio.wait([self._running])

    # -- departing

    def begin(self) -> None:
        """Lets depart what the store has let go; call it after that."""
        if self._departing is None and self._something_to_do():
            self._round_over = asyncio.get_running_loop().create_future()
            self._departing = duty(self._depart(), name="let logs depart")

    async def over(self) -> None:
        """Returns after the next round, which begins at once."""
        self.begin()
        if self._round_over is not None:
            self._hurried.set()
            await asyncio.shield(self._round_over)

    async def stop(self) -> None:
        """Ends the departures; what is left of them the store sees to when it is closed."""
        if self._departing is not None:
            self._departing.cancel()
            await asyncio.gather(self._departing, return_exceptions=True)
        await self._written()

    def _something_to_do(self) -> bool:
        store = self._store
        return len(store.departures) > 0 or any(each.online and each.outdated for each in store.directories)

    async def _depart(self) -> None:
        try:
            while self._something_to_do():
                self._hurried.clear()
                await self._round()
                self._end_round()
                await self._pause()
        finally:
            self._departing = None
            if self._round_over is not None:
                self._end_round()
                self._round_over = None

    async def _round(self) -> None:
        store = self._store
        self.rounds += 1
        async with self._writing:
            leaving = list(store.departures)
            for each in leaving:
                if each.log is not None:
                    await self._at_rest(each.log)
            for directory in store.directories:
                if directory.online:
                    for checkpoint in store.departures.outdated(directory):
                        await self._write(checkpoint, [directory])
        # Without the lock: a log that is let go from here on is none of these.
        await in_slices(self._clock, leaving, store.depart)

    def _end_round(self) -> None:
        ended, self._round_over = self._round_over, asyncio.get_running_loop().create_future()
        if ended is not None and not ended.done():
            ended.set_result(None)

    async def _pause(self) -> None:
        """Others that go soon are in the next round; but whoever waits for one does not wait for them."""
        if self._something_to_do() and not self._hurried.is_set():
            try:
                async with asyncio.timeout(BETWEEN_ROUNDS_MS / 1_000):
                    await self._hurried.wait()
            except TimeoutError:
                return
