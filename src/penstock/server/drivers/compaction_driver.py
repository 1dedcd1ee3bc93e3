"""Chooses the dirtiest compacted log, has it cleaned in a helper process, and swaps the result in.

The loop only plans and renames. While the helper copies, appends go on: compaction never touches the active segment.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from penstock.model.errors import PenstockError, StorageFailed
from penstock.model.ids import Offset
from penstock.server.duty import duty
from penstock.storage.clean_job import CleanResult

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock, Offload
    from penstock.server.drivers.hosted import Hosted
    from penstock.server.drivers.partition_driver import PartitionDriver
    from penstock.storage.cleaning import CleanPlan
    from penstock.storage.store import LogStore

log = logging.getLogger("penstock.compaction")


class CompactionDriver:
    """Owns one task; one log is cleaned at a time."""

    def __init__(
        self, settings: BrokerSettings, partitions: PartitionDriver, store: LogStore, clock: Clock, offload: Offload
    ) -> None:
        self._settings, self._partitions, self._store = settings, partitions, store
        self._clock, self._offload = clock, offload
        self._task: asyncio.Task[None] | None = None
        # The partition whose log a helper is copying just now; a move to another directory waits for it.
        self.cleaning: Hosted | None = None
        # A log that could not be cleaned is left alone until it has grown, or it would be tried for ever.
        self._uncleanable: dict[object, int] = {}
        self.runs = self.bytes_before = self.bytes_after = 0

    def start(self) -> None:
        if self._settings.flag("log.cleaner.enable"):
            self._task = duty(self._run(), name="compaction")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                while await self.clean_dirtiest():
                    pass
            except Exception:
                log.exception("compaction failed and will be tried again")
            await asyncio.sleep(self._settings.number("log.cleaner.backoff.ms") / 1_000)

    async def clean_dirtiest(self) -> bool:
        """Cleans one log; False when none is dirty enough. What has been dirty for too long goes first."""
        best: tuple[tuple[bool, float], Hosted, CleanPlan] | None = None
        now = self._clock.now_ms()
        for hosted in list(self._partitions.compacted.values()):
            target = hosted.log
            if target is None or hosted.moving:
                continue
            if self._uncleanable.get(hosted.key) == target.next:
                continue
            plan = target.cleanable(
                now,
                self._store.cleaner_offset(hosted.key),
                dedupe_buffer_bytes=self._settings.number("log.cleaner.dedupe.buffer.size"),
            )
            if plan is not None and (best is None or (plan.urgent, plan.dirty_ratio) > best[0]):
                best = (plan.urgent, plan.dirty_ratio), hosted, plan
        if best is None:
            return False
        await self._clean(best[1], best[2])
        return True

    async def _clean(self, hosted: Hosted, plan: CleanPlan) -> None:
        target = hosted.require_log()
        self.cleaning = hosted
        try:
            answer = await self._offload.run("clean", {"directory": target.directory, "job": plan.job.to_json()})
            result = CleanResult.from_json(answer)
            if hosted.log is not target:
                return  # deleted or moved while the helper worked; its leftovers go with the directory
            if not target.swap(plan, result, now=self._clock.now_ms()):
                return
            await self._offload.call(self._store.set_cleaner_offset(hosted.key, Offset(result.first_dirty)).sync)
        except StorageFailed as failure:
            self._partitions.storage_failed(failure)
            return
        except OSError as error:
            self._partitions.storage_failed(StorageFailed(target.directory, f"compaction: {error}"))
            return
        except PenstockError as failure:
            self._uncleanable[hosted.key] = target.next
            log.error("%s cannot be compacted until it has grown: %s", hosted.name, failure)
            return
        finally:
            self.cleaning = None
        self._uncleanable.pop(hosted.key, None)
        self.runs += 1
        self.bytes_before += result.bytes_before
        self.bytes_after += result.bytes_after
        log.info(
            "compacted %s up to %d: %d bytes became %d",
            hosted.name,
            result.first_dirty,
            result.bytes_before,
            result.bytes_after,
        )
