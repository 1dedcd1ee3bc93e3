"""The chores of a node: retention, checkpoints, expiry, timed flushes and the removal of what was deleted.

Each chore has its own beat. Those that come every few seconds look only at partitions that have something to do;
those that look at all of them come every minute or less often, and are cut into slices of a few milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from penstock.model.errors import StorageFailed
from penstock.server.loops.duty import duty
from penstock.server.loops.slices import in_slices
from penstock.storage.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from penstock.storage.removal import TreeRemoval

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock, Files, Offload
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.partitions.upkeep.checkpoints import CheckpointDriver
    from penstock.server.partitions.upkeep.flushing import FlushDriver
    from penstock.storage.log import Log
    from penstock.storage.store import LogStore

log = logging.getLogger("penstock.upkeep")

# Files go when they are due, one by one. Many at once would take the core for as long as all of them together.
PURGE_INTERVAL_MS = 1_000
FLUSH_LOOK_INTERVAL_MS = 1_000
DAY_MS = 86_400_000
SHORTEST_MS = 10

Chore = tuple[str, Callable[[], int], Callable[[], Awaitable[None]]]
"""What it is called, how often it comes in milliseconds, and what is done."""


class UpkeepDriver:
    """Owns one task per chore."""

    def __init__(
        self,
        settings: BrokerSettings,
        partitions: PartitionDriver,
        store: LogStore,
        flushes: FlushDriver,
        checkpoints: CheckpointDriver,
        clock: Clock,
        files: Files,
        offload: Offload,
    ) -> None:
        self._settings, self._partitions, self._store = settings, partitions, store
        self._flushes, self._checkpoints = flushes, checkpoints
        self._clock, self._files, self._offload = clock, files, offload
        self._others: list[Chore] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.segments_deleted = 0

    def also(self, name: str, interval_ms: Callable[[], int], chore: Callable[[], Awaitable[None]]) -> None:
        """A chore of somebody else, on a beat of its own. Before `start`."""
        self._others.append((name, interval_ms, chore))

    def start(self) -> None:
        interval = self._settings.number
        chores: list[Chore] = [
            ("retention", lambda: interval("log.retention.check.interval.ms"), self.retain),
            (
                "high watermarks",
                lambda: interval("replica.high.watermark.checkpoint.interval.ms"),
                self.checkpoint_high_watermarks,
            ),
            (
                "recovery points",
                lambda: interval("log.flush.offset.checkpoint.interval.ms"),
                self.checkpoint_recovery_points,
            ),
            (
                "log starts",
                lambda: interval("log.flush.start.offset.checkpoint.interval.ms"),
                self.checkpoint_log_starts,
            ),
            ("producer expiry", lambda: interval("producer.id.expiration.check.interval.ms"), self.expire_producers),
            ("purge", lambda: PURGE_INTERVAL_MS, self.purge),
            ("timed flush", lambda: FLUSH_LOOK_INTERVAL_MS, self.flush_due),
            *self._others,
        ]  # fmt: skip
        self._tasks = [duty(self._repeat(*chore), name=f"upkeep: {chore[0]}") for chore in chores]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, name: str, interval_ms: Callable[[], int], chore: Callable[[], Awaitable[None]]) -> None:
        # Right after a start there is enough to do; but who asks for a short interval gets it from the beginning.
        delay_ms = min(self._settings.number("log.initial.task.delay.ms"), interval_ms())
        while True:
            await asyncio.sleep(max(SHORTEST_MS, min(delay_ms, DAY_MS)) / 1_000)
            delay_ms = interval_ms()
            try:
                await chore()
            except StorageFailed as failure:
                self._partitions.storage_failed(failure)
            except Exception:
                log.exception("%s failed and will be tried again", name)

    async def _each(self, visit: Callable[[Hosted], object], chosen: Iterable[Hosted] | None = None) -> None:
        """Visits hosted partitions that have a log, all or the chosen ones, a few milliseconds at a time."""

        def guarded(hosted: Hosted) -> None:
            if hosted.log is not None:
                try:
                    visit(hosted)
                except StorageFailed as failure:
                    self._partitions.storage_failed(failure)

        await in_slices(self._clock, self._partitions if chosen is None else chosen, guarded)

    async def retain(self) -> None:
        now = self._clock.now_ms()

        def visit(hosted: Hosted) -> None:
            target = hosted.require_log()
            start = target.log_start
            removed = target.retain(now)
            self.segments_deleted += len(removed)
            if target.log_start != start:
                hosted.grew(now)
                hosted.start_moved()

        await self._each(visit)

    async def expire_producers(self) -> None:
        now = self._clock.now_ms()
        await self._each(lambda hosted: hosted.require_log().producers.expire(now))

    async def purge(self) -> None:
        """Removes what was deleted long enough ago that nobody can still be reading it."""
        monotonic_ms, partitions = self._clock.monotonic_ms(), self._partitions
        for path in self._store.purgeable(monotonic_ms):
            await self._remove(path, TreeRemoval(self._files, path))
        due: list[tuple[Hosted, Log, str]] = []

        def visit(hosted: Hosted) -> None:
            target = hosted.require_log()
            due.extend((hosted, target, path) for path in target.purgeable(monotonic_ms))
            if not target.has_doomed:
                partitions.tables.doomed.pop(hosted.key, None)

        await self._each(visit, partitions.tables.doomed.values())
        for hosted, target, path in due:
            if hosted.log is target:  # else it went, and another log may have a file of this name
                await self._remove(path, self._files.remove, path)

    async def _remove(self, path: str, remove: Callable[..., None], *args: str) -> None:
        """Off the loop: the kernel takes a tenth of a second to give up the cached pages of a gigabyte."""
        try:
            await self._offload.call(remove, *args)
        except FileNotFoundError:
            pass  # it went with its directory, or that has another name now and opening it removes what was deleted
        except OSError as error:
            self._partitions.storage_failed(StorageFailed(path, f"cannot be removed: {error}"))

    async def flush_due(self) -> None:
        """`flush.ms` bounds how long a record may stay unsynced."""
        now = self._clock.now_ms()
        for hosted in list(self._partitions.tables.flushed_by_time.values()):
            since = hosted.unsynced_since
            if since is not None and now - since >= hosted.settings.flush_ms:
                self._flushes.want(hosted)

    async def checkpoint_high_watermarks(self) -> None:
        if self._partitions.committed_since_checkpoint:
            self._partitions.committed_since_checkpoint = False
            await self._checkpoints.write(HIGH_WATERMARKS)

    async def checkpoint_recovery_points(self) -> None:
        await self._checkpoints.write(RECOVERY_POINTS)

    async def checkpoint_log_starts(self) -> None:
        await self._checkpoints.write(LOG_STARTS)
