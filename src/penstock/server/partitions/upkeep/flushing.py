"""fsync off the loop, one for all who wait.

While a round of syncs runs, whoever appends meanwhile joins the next round: that is the group commit that keeps
fsync-before-ack usable. After a round of many its producers come back at once, so the next one waits a moment for
them: two halves of a crowd that take turns cost twice the syncs. Where they do not come, it waits for nobody, and
begins before those of the last one are answered, so that disk and loop work at the same time.
Each log directory has rounds of its own: a slow disk holds up nobody else.
Logs of other topics are synced when `flush.messages` or `flush.ms` ask for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.model.errors import Refused, StorageFailed
from penstock.server.loops.duty import duty
from penstock.storage.flushing import SyncTogether, is_data, lie_on
from penstock.storage.shared_sync import Volume

if TYPE_CHECKING:
    from penstock.model.ids import Offset
    from penstock.model.ports import Clock, Offload
    from penstock.server.partitions.hosted import Hosted
    from penstock.storage.flushing import Syncable
    from penstock.storage.log import Log

log = logging.getLogger("penstock.flush")

CROWD: Final = 4
"""A round that so many asked for is worth waiting for."""
GATHERING_S: Final = 0.001
GATHERING_EACH_S: Final = 0.000_08
GATHERING_MAX_S: Final = 0.005
"""A crowd comes back as fast as its requests can be served, so a larger one is given more time, up to this."""
ROUNDS_WITHOUT_GATHERING: Final = 32
"""After waiting in vain."""


class _Share(NamedTuple):
    """What one partition has in a round: `items` make its log durable up to `target`."""

    hosted: Hosted
    log: Log
    target: Offset
    items: list[Syncable]


class _Round(NamedTuple):
    """Syncs under way: those of bytes go together, a log with new names has an order of its own and goes alone."""

    together: list[_Share]
    syncing: asyncio.Future[dict[int, OSError]] | None
    alone: list[asyncio.Task[None]]
    asked: int


class _Lane:
    """The rounds of one log directory. `asked` counts how often the next round was asked for, by how many it can be."""

    __slots__ = ("_crowd", "_gathered", "_timer", "asked", "directory", "hurried", "running", "volume", "wanted")

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.wanted: dict[Hosted, None] = {}
        self.running: asyncio.Task[None] | None = None
        self.volume = Volume(directory)
        self.asked = 0
        self.hurried = 0  # for how many rounds nobody is waited for
        self._crowd = 0
        self._gathered: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def want(self, hosted: Hosted) -> None:
        self.wanted[hosted] = None
        self.asked += 1
        if self._gathered is not None and self.asked >= self._crowd:
            self._go()

    async def gather(self, returning: int) -> None:
        """Returns when as many as that have asked who did not before, or after a moment."""
        loop = asyncio.get_running_loop()
        self._crowd = self.asked + returning
        self._gathered = loop.create_future()
        patience = min(max(GATHERING_S, returning * GATHERING_EACH_S), GATHERING_MAX_S)
        self._timer = loop.call_later(patience, self._go)
        await self._gathered
        if self.asked < self._crowd:
            self.hurried = ROUNDS_WITHOUT_GATHERING

    def _go(self) -> None:
        gathered, self._gathered = self._gathered, None
        if self._timer is not None:
            self._timer.cancel()
        if gathered is not None and not gathered.done():
            gathered.set_result(None)


class FlushDriver:
    """Owns the queue of logs that want to be synced."""

    def __init__(self, clock: Clock, offload: Offload, on_failure: Callable[[StorageFailed], None]) -> None:
        self._clock, self._offload, self._on_failure = clock, offload, on_failure
        self._lanes: dict[str, _Lane] = {}
        # Logs whose files are synced by their names just now.
        self._by_name: dict[Log, asyncio.Task[None]] = {}
        self.rounds = self.syncs = 0

    def want(self, hosted: Hosted) -> None:
        """Asks for everything written so far to be synced soon."""
        target_log = hosted.log
        if target_log is None:
            return  # whoever opens it again asks again
        lane = self._lanes.get(target_log.home)
        if lane is None:
            lane = self._lanes[target_log.home] = _Lane(target_log.home)
        lane.want(hosted)
        if lane.running is None:
            lane.running = duty(self._run(lane), name="flush")

    async def drain(self) -> None:
        """Returns when nothing is waiting to be synced."""
        while running := [lane.running for lane in self._lanes.values() if lane.running is not None]:
            await asyncio.wait(running)

    async def at_rest(self, target_log: Log) -> None:
        """Returns when no sync is under way that goes to the log's directory by its name."""
        if (running := self._by_name.get(target_log)) is not None:
            await asyncio.wait([running])

    async def _run(self, lane: _Lane) -> None:
        try:
            current = self._begin(lane)
            while current is not None:
                failures = await current.syncing if current.syncing is not None else {}
                if current.alone:
                    await asyncio.wait(current.alone)
                if current.asked >= CROWD and not lane.hurried:
                    self._end(current.together, failures)
                    await lane.gather(current.asked)
                    current = self._begin(lane)
                else:
                    lane.hurried = max(0, lane.hurried - 1)
                    following = self._begin(lane)
                    self._end(current.together, failures)
                    current = following or self._begin(lane)
        finally:
            lane.running = None

    def _begin(self, lane: _Lane) -> _Round | None:
        """Hands everything that is wanted to the disk; None when nothing is."""
        if not lane.wanted:
            return None
        wanted, lane.wanted = lane.wanted, {}
        asked, lane.asked = lane.asked, 0
        self.rounds += 1
        together: list[_Share] = []
        alone: list[asyncio.Task[None]] = []
        for hosted in wanted:
            share = self._share(lane, hosted)
            if share is None:
                continue
            items = share.items
            self.syncs += len(items)
            if is_data(items[0]) if len(items) == 1 else all(map(is_data, items)):
                together.append(share)
            else:
                task = duty(self._sync_in_order(share), name="flush")
                self._by_name[share.log] = task
                alone.append(task)
        files = [item for share in together for item in share.items]
        pays = lane.volume.pays(len(files), self._clock.monotonic_ms())
        volume = lane.volume if pays and lie_on(lane.volume, files) else None
        syncing = asyncio.ensure_future(self._offload.call(SyncTogether(files, volume))) if files else None
        return _Round(together, syncing, alone, asked)

    def _share(self, lane: _Lane, hosted: Hosted) -> _Share | None:
        target_log = hosted.log
        if target_log is None or hosted.syncs_held:
            return None  # whoever holds it asks again
        if target_log.home != lane.directory:
            self.want(hosted)  # it has moved since: its syncs stand in another line, and no two of them run at once
            return None
        try:
            return _Share(hosted, target_log, target_log.written, target_log.files_to_sync())
        except (OSError, StorageFailed, Refused) as error:
            self._failed(hosted, target_log, error)
            return None

    async def _sync_in_order(self, share: _Share) -> None:
        try:
            for item in share.items:
                if share.hosted.log is share.log:  # else it went, and nobody needs the rest
                    await self._offload.call(item.sync)
        except (OSError, StorageFailed, Refused) as error:
            self._failed(share.hosted, share.log, error)
            return
        finally:
            del self._by_name[share.log]
        self._synced(share)

    def _end(self, together: list[_Share], failures: dict[int, OSError]) -> None:
        if not failures:
            now = self._clock.now_ms()
            for hosted, synced_log, target, _ in together:
                if hosted.log is synced_log:
                    hosted.synced(target, now)
            return
        at = 0
        for share in together:
            end = at + len(share.items)
            failure = next((failures[index] for index in range(at, end) if index in failures), None)
            at = end
            if failure is None:
                self._synced(share)
            else:
                self._failed(share.hosted, share.log, failure)

    def _synced(self, share: _Share) -> None:
        if share.hosted.log is share.log:
            share.hosted.synced(share.target, self._clock.now_ms())

    def _failed(self, hosted: Hosted, target_log: Log, error: Exception) -> None:
        if hosted.log is not target_log:
            return  # deleted, moved or offline meanwhile: its files are not where they were
        log.error("sync of %s failed: %s", hosted.name, error)
        self._on_failure(StorageFailed(target_log.directory, f"sync failed: {error}"))
