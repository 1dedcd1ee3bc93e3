"""fsync off the loop, one for all who wait.

While one round of syncs runs, whoever appends meanwhile joins the next round: that is the group commit that keeps
fsync-before-ack usable. Logs of other topics are synced when `flush.messages` or `flush.ms` ask for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.model.errors import Refused, StorageFailed

if TYPE_CHECKING:
    from penstock.model.ids import Offset
    from penstock.model.ports import Clock, Offload
    from penstock.server.drivers.hosted import Hosted

log = logging.getLogger("penstock.flush")


class FlushDriver:
    """Owns the queue of logs that want to be synced."""

    def __init__(self, clock: Clock, offload: Offload, on_failure: Callable[[StorageFailed], None]) -> None:
        self._clock, self._offload, self._on_failure = clock, offload, on_failure
        self._wanted: dict[Hosted, None] = {}
        self._round: asyncio.Task[None] | None = None
        self.rounds = self.syncs = 0

    def want(self, hosted: Hosted) -> None:
        """Asks for everything written so far to be synced soon."""
        self._wanted[hosted] = None
        if self._round is None:
            self._round = asyncio.get_running_loop().create_task(self._run(), name="flush")

    async def drain(self) -> None:
        """Returns when nothing is waiting to be synced."""
        while self._round is not None:
            await asyncio.shield(self._round)

    async def _run(self) -> None:
        try:
            while self._wanted:
                wanted, self._wanted = self._wanted, {}
                self.rounds += 1
                await asyncio.gather(*(self._sync(hosted) for hosted in wanted))
        finally:
            self._round = None

    async def _sync(self, hosted: Hosted) -> None:
        target_log = hosted.log
        if target_log is None or hosted.syncs_held:
            return  # whoever holds it asks again
        target: Offset = target_log.written
        try:
            for item in target_log.files_to_sync():
                self.syncs += 1
                await self._offload.call(item.sync)
        except (OSError, StorageFailed, Refused) as error:
            if hosted.log is not target_log:
                return  # deleted, moved or offline meanwhile: its files are not where they were
            log.error("sync of %s failed: %s", hosted.name, error)
            self._on_failure(StorageFailed(target_log.directory, f"sync failed: {error}"))
            return
        if hosted.log is target_log:
            hosted.synced(target, self._clock.now_ms())
