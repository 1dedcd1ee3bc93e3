"""Chooses the dirtiest compacted log, has it cleaned in a helper process, and swaps the result in.

The loop only plans and renames. While the helper copies, appends go on: compaction never touches the active segment.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from penstock.model.errors import PenstockError, StorageFailed
from penstock.model.ids import Offset
from penstock.server.loops.duty import duty
from penstock.storage.checkpoints import CLEANER_OFFSETS
from penstock.storage.clean_job import CleanResult

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ids import PartitionKey
    from penstock.model.ports import Clock, Offload
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.partitions.upkeep.checkpoints import CheckpointDriver
    from penstock.storage.cleaning import CleanPlan
    from penstock.storage.log import Log

log = logging.getLogger("penstock.compaction")


class CompactionDriver:
    """Owns one task; one log is cleaned at a time."""

    def __init__(
        self,
        settings: BrokerSettings,
        partitions: PartitionDriver,
        checkpoints: CheckpointDriver,
        clock: Clock,
        offload: Offload,
    ) -> None:
        self._settings, self._partitions, self._checkpoints = settings, partitions, checkpoints
        self._clock, self._offload = clock, offload
        self._task: asyncio.Task[None] | None = None
        # The helper at work, and the log that it reads.
        self._helper: asyncio.Task[dict[str, object]] | None = None
        self._helped: Log | None = None
        # The partition whose log a helper is copying just now; a move to another directory waits for it.
        self.cleaning: Hosted | None = None
        # A log that could not be cleaned is left alone until it has grown, or it would be tried for ever.
        self._uncleanable: dict[PartitionKey, int] = {}
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
        now, compacted = self._clock.now_ms(), self._partitions.tables.compacted
        self._uncleanable = {key: end for key, end in self._uncleanable.items() if key in compacted}
        for hosted in list(compacted.values()):
            target = hosted.log
            if target is None or hosted.moving:
                continue
            if self._uncleanable.get(hosted.key) == target.next:
                continue
            plan = target.cleanable(
                now,
                dedupe_buffer_bytes=self._settings.number("log.cleaner.dedupe.buffer.size"),
            )
            if plan is not None and (best is None or (plan.urgent, plan.dirty_ratio) > best[0]):
                best = (plan.urgent, plan.dirty_ratio), hosted, plan
        if best is None:
            return False
        await self._clean(best[1], best[2])
        return True

    async def at_rest(self, target: Log) -> None:
        """Ends the helper that works in the directory of a log that goes; the next log there may have its name."""
        helper = self._helper
        if helper is not None and self._helped is target:
            helper.cancel()
            await asyncio.wait([helper])

    async def _help(self, target: Log, plan: CleanPlan) -> CleanResult | None:
        """What the helper made of the plan; None when the log went, or lost something that the helper looked for."""
        asking = self._offload.run("clean", {"directory": target.directory, "job": plan.job.to_json()})
        self._helper, self._helped = asyncio.ensure_future(asking), target
        try:
            await asyncio.wait([self._helper])
            return None if self._helper.cancelled() else CleanResult.from_json(self._helper.result())
        except (OSError, PenstockError) as failure:
            if not target.overtook(plan):
                raise
            log.debug("a pass over %s was overtaken by retention or truncation: %s", target.name, failure)
            return None
        except asyncio.CancelledError:
            self._helper.cancel()
            await asyncio.wait([self._helper])
            raise
        finally:
            self._helper = self._helped = None

    async def _clean(self, hosted: Hosted, plan: CleanPlan) -> None:
        target = hosted.require_log()
        self.cleaning = hosted
        try:
            result = await self._help(target, plan)
            if result is None or hosted.log is not target:
                return  # deleted, moved or cut while the helper worked; it clears away its leftovers, or they go too
            if not target.swap(plan, result, now=self._clock.now_ms()):
                return
            target.cleaned_to = Offset(result.first_dirty)
            await self._checkpoints.write(CLEANER_OFFSETS)
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
