"""The chores of a node: retention, checkpoints, expiry, timed flushes and the removal of what was deleted.

Each chore has its own beat. Work in proportion to partitions is cut into slices, and a checkpoint whose content did
not change is not written again, so an idle node does nothing but wake up now and then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from penstock.model.errors import StorageFailed
from penstock.server.drivers.partition_driver import SLICE_MS
from penstock.storage.flushing import TextWrite

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock, Files, Offload
    from penstock.server.drivers.flush_driver import FlushDriver
    from penstock.server.drivers.hosted import Hosted
    from penstock.server.drivers.partition_driver import PartitionDriver
    from penstock.storage.flushing import Syncable
    from penstock.storage.store import LogStore

log = logging.getLogger("penstock.upkeep")

PURGE_INTERVAL_MS = 15_000
FLUSH_LOOK_INTERVAL_MS = 1_000
DAY_MS = 86_400_000
SHORTEST_MS = 10


class UpkeepDriver:
    """Owns one task per chore."""

    def __init__(
        self,
        settings: BrokerSettings,
        partitions: PartitionDriver,
        store: LogStore,
        flushes: FlushDriver,
        clock: Clock,
        files: Files,
        offload: Offload,
    ) -> None:
        self._settings, self._partitions, self._store = settings, partitions, store
        self._flushes, self._clock, self._files, self._offload = flushes, clock, files, offload
        self._tasks: list[asyncio.Task[None]] = []
        self.segments_deleted = 0

    def start(self) -> None:
        interval = self._settings.number
        chores: list[tuple[str, Callable[[], int], Callable[[], Awaitable[None]]]] = [
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
        ]  # fmt: skip
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._repeat(*chore), name=f"upkeep: {chore[0]}") for chore in chores]

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

    async def _each(self, visit: Callable[[Hosted], object]) -> None:
        """Visits every hosted partition that has a log, a few milliseconds at a time."""
        until = self._clock.monotonic_ms() + SLICE_MS
        for hosted in list(self._partitions):
            if hosted.log is None:
                continue
            try:
                visit(hosted)
            except StorageFailed as failure:
                self._partitions.storage_failed(failure)
            if self._clock.monotonic_ms() >= until:
                await asyncio.sleep(0)
                until = self._clock.monotonic_ms() + SLICE_MS

    async def retain(self) -> None:
        now = self._clock.now_ms()

        def visit(hosted: Hosted) -> None:
            target = hosted.require_log()
            start = target.log_start
            removed = target.retain(now)
            self.segments_deleted += len(removed)
            if target.log_start != start:
                hosted.grew(now)
                hosted.moved()

        await self._each(visit)

    async def expire_producers(self) -> None:
        now = self._clock.now_ms()
        await self._each(lambda hosted: hosted.require_log().producers.expire(now))

    async def purge(self) -> None:
        """Removes what was deleted long enough ago that nobody can still be reading it."""
        now = self._clock.now_ms()
        for path in self._store.purgeable(now):
            try:
                await self._offload.call(self._files.rmtree, path)
            except OSError as error:
                self._partitions.storage_failed(StorageFailed(path, f"cannot be removed: {error}"))
        await self._each(lambda hosted: hosted.require_log().purge(now))

    async def flush_due(self) -> None:
        """`flush.ms` bounds how long a record may stay unsynced."""
        now = self._clock.now_ms()
        for hosted in list(self._partitions):
            since = hosted.unsynced_since
            if since is not None and now - since >= hosted.settings.flush_ms:
                self._flushes.want(hosted)

    async def checkpoint_high_watermarks(self) -> None:
        if self._partitions.committed_since_checkpoint:
            self._partitions.committed_since_checkpoint = False
            await self._write(self._store.high_watermarks_to_write())

    async def checkpoint_recovery_points(self) -> None:
        await self._write(self._store.recovery_points_to_write())

    async def checkpoint_log_starts(self) -> None:
        await self._write(self._store.log_starts_to_write())

    async def _write(self, writes: Sequence[Syncable]) -> None:
        for write in writes:
            try:
                await self._offload.call(write.sync)
            except OSError as error:
                # A write or a sync that fails does not say of which file.
                path = write.path if isinstance(write, TextWrite) else error.filename or ""
                self._partitions.storage_failed(StorageFailed(path, f"a checkpoint cannot be written: {error}"))
