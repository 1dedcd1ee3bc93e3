"""Moves replicas from one log directory of this node to another while they are read and written.

A move copies into a *future* log in the new directory, a chunk at a time, until it holds all the current log holds.
Then, in one step that nothing interrupts, it takes the current log's place. The old directory goes when the new one is
synced. Whenever the process dies: before the take-over the old log serves and the next start goes on copying; after
it both directories may be there, and the one with the longer history serves (`LogStore`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.kernels import BadBatch, scan_batches
from penstock.model.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    REPLICA_NOT_AVAILABLE,
    Corrupt,
    Refused,
    StorageFailed,
)
from penstock.model.ids import Offset, PartitionKey, TopicPartition
from penstock.server.loops.duty import duty
from penstock.server.loops.slices import Slices
from penstock.server.partitions.relocation_pace import Pace
from penstock.storage.checkpoints import OFFSET_CHECKPOINTS, RECOVERY_POINTS
from penstock.storage.moving import align, begin_anew, missing_bytes, read_on
from penstock.storage.names import NAME_BYTES_MAX, Kind, partition_directory

if TYPE_CHECKING:
    from penstock.model.ports import Clock, Offload
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.partitions.upkeep.checkpoints import CheckpointDriver
    from penstock.storage.log import Log
    from penstock.storage.log_directory import LogDirectory
    from penstock.storage.reading import Read
    from penstock.storage.store import LogStore

log = logging.getLogger("penstock.relocation")

CHUNK_BYTES: Final = 256 << 10
TAIL_BYTES: Final = 32 << 10
"""What is copied within the step of the take-over: a few milliseconds even when every batch is tiny."""
SYNC_EVERY_BYTES: Final = 64 << 20
BATCHES_AT_ONCE: Final = 32
WAIT_MS: Final = 50
HOLD_MS_MAX: Final = 1_000
"""How long acknowledgements that wait for a sync may be held up by a move that does not catch up."""
STUMBLES_MAX: Final = 3


class Move:
    """One replica on its way. `resumed` while nobody has looked at what an earlier life copied."""

    __slots__ = ("begun", "future", "held_until", "hosted", "resumed", "source", "stumbles", "unsynced_bytes")

    def __init__(self, hosted: Hosted, source: Log, future: Log, *, resumed: bool) -> None:
        self.hosted, self.source, self.future, self.resumed = hosted, source, future, resumed
        self.begun = resumed
        self.unsynced_bytes = self.stumbles = 0
        # While syncs of the source are held: when to give up holding them.
        self.held_until: float | None = None


class RelocationDriver:
    """The door behind AlterReplicaLogDirs. One task copies for all moves, a chunk of each in turn."""

    def __init__(
        self,
        partitions: PartitionDriver,
        store: LogStore,
        checkpoints: CheckpointDriver,
        clock: Clock,
        offload: Offload,
        *,
        bytes_per_second: Callable[[], int],
        cleaning: Callable[[], Hosted | None],
        on_moved: Callable[[PartitionKey], None],
    ) -> None:
        self._partitions, self._store, self._checkpoints = partitions, store, checkpoints
        self._clock, self._offload = clock, offload
        self._cleaning, self._on_moved = cleaning, on_moved
        self._pace = Pace(clock, bytes_per_second)
        self._moves: dict[PartitionKey, Move] = {}
        self._task: asyncio.Task[None] | None = None
        # Partitions whose former directory is still on its way out; the way back there is not free before it is gone.
        self._retiring: dict[PartitionKey, asyncio.Task[None]] = {}
        self.moved = self.bytes_copied = 0

    # -- asking

    def alter(self, topic: str, partition: int, path: str) -> None:
        """Begins to move a replica to the directory at `path`; where it is there already, ends a move elsewhere.

        A replica that is not here yet is refused, and made there should it come.
        """
        name = TopicPartition(topic, partition)
        directory = self._directory(name, path)
        try:
            hosted = self._partitions.named(topic, partition)
        except Refused as refusal:
            self._partitions.placement.prefer(name, directory)
            if refusal.error is NOT_LEADER_OR_FOLLOWER:
                raise Refused(REPLICA_NOT_AVAILABLE, refusal.why) from refusal
            raise
        source = hosted.require_log()
        future = self._store.futures.get(hosted.key)
        if future is not None and self._store.directory_of(future) is not directory:
            self._cancel(hosted)
            future = None
        if self._store.directory_of(source) is directory:
            return
        if future is None:
            future = self._create_future(hosted, directory)
        self._begin(hosted, source, future)

    def _directory(self, name: TopicPartition, path: str) -> LogDirectory:
        if len(partition_directory(name, Kind.FUTURE, "0" * 32)) > NAME_BYTES_MAX:
            raise Refused(INVALID_TOPIC_EXCEPTION, "the topic's name is too long for the directory of a move")
        directory = self._store.directory_at(path)
        if not directory.online:
            raise Refused(KAFKA_STORAGE_ERROR, f"{directory.path} is offline: {directory.why_offline}")
        if directory.cordoned:
            raise Refused(INVALID_REPLICA_ASSIGNMENT, f"{directory.path} is cordoned: it takes no more replicas")
        return directory

    def _create_future(self, hosted: Hosted, directory: LogDirectory) -> Log:
        for other in self._store.directories:
            if not other.online:
                # It may hold a copy that was begun earlier; two of them could not be told apart when it comes back.
                raise Refused(KAFKA_STORAGE_ERROR, f"nothing is moved while {other.path} is offline")
        now = self._clock.now_ms()
        try:
            return self._store.create(
                hosted.name, hosted.key.topic_id, hosted.settings, directory.id, now=now, future=True
            )
        except StorageFailed as failure:
            raise Refused(KAFKA_STORAGE_ERROR, str(failure)) from failure

    def _begin(self, hosted: Hosted, source: Log, future: Log, *, resumed: bool = False) -> None:
        if hosted.key not in self._moves:
            log.info("moving %s from %s to %s", hosted.name, source.directory, future.directory)
            hosted.moving = True
            self._moves[hosted.key] = Move(hosted, source, future, resumed=resumed)
        if self._task is None:
            self._task = duty(self._run(), name="move replicas")

    def _cancel(self, hosted: Hosted) -> None:
        if (move := self._moves.get(hosted.key)) is not None:
            self._forget(move)
        self._store.let_go(hosted.key, now=self._clock.now_ms(), future=True)
        self._checkpoints.begin()

    # -- coming and going

    def resume(self) -> None:
        """Goes on with what an earlier life began. Call it when partitions have taken their roles."""
        for hosted in self._partitions if self._store.futures else ():
            future = self._store.futures.get(hosted.key)
            if future is None or hosted.log is None:
                continue
            if self._store.directory_of(future) is self._store.directory_of(hosted.log):
                self._cancel(hosted)
            else:
                self._begin(hosted, hosted.log, future, resumed=True)

    async def stop(self) -> None:
        """Copies stay where they are, for the next start; what has moved is brought to its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for move in self._moves.values():
            self._let_sync(move)
        while self._retiring:
            await asyncio.gather(*self._retiring.values(), return_exceptions=True)

    # -- copying

    async def _run(self) -> None:
        try:
            while self._moves:
                worked = False
                for move in list(self._moves.values()):
                    worked |= await self._step(move)
                if not worked:
                    await asyncio.sleep(WAIT_MS / 1_000)
        finally:
            self._task = None

    async def _step(self, move: Move) -> bool:
        """Does what is next for one move; False when it can only wait."""
        if not self._goes_on(move):
            self._forget(move)
            return True
        if self._cleaning() is move.hosted:
            return False
        try:
            await self._advance(move)
            move.stumbles = 0
        except StorageFailed as failure:
            self._partitions.storage_failed(failure)
            self._stumbled(move, failure, final=True)
        except (Refused, Corrupt, BadBatch) as broken:
            self._stumbled(move, broken, final=move.stumbles >= STUMBLES_MAX)
        except Exception as broken:
            log.exception("the move of %s failed", move.hosted.name)
            self._stumbled(move, broken, final=True)
        return True

    def _goes_on(self, move: Move) -> bool:
        """Whether both logs are still in service: neither deleted nor cancelled, and no directory lost."""
        key = move.hosted.key
        return self._store.futures.get(key) is move.future and move.hosted.log is move.source

    def _forget(self, move: Move) -> None:
        if self._moves.get(move.hosted.key) is move:
            del self._moves[move.hosted.key]
            move.hosted.moving = False
            self._let_sync(move)

    def _stumbled(self, move: Move, why: Exception, *, final: bool) -> None:
        move.stumbles += 1
        if final and self._goes_on(move):
            log.error("%s stays where it is: %s", move.hosted.name, why)
            self._cancel(move.hosted)

    async def _advance(self, move: Move) -> None:
        source, future = move.source, move.future
        future.settings = source.settings
        align(source, future, now=self._clock.now_ms())
        if not move.begun:
            # A recovery point that the replica had here in an earlier stay must not be taken for the copy's.
            await self._checkpoints.write(RECOVERY_POINTS)
            move.begun = True
            return
        if move.resumed:
            await self._compare(move)
            return
        read = read_on(source, future, CHUNK_BYTES)
        is_tail = read.size <= TAIL_BYTES and (read.end >= source.written or not read.spans)
        if not is_tail:
            await self._copy_chunk(move, read)
        elif move.hosted.key in self._retiring or move.hosted.name in self._store.departures:
            await asyncio.sleep(WAIT_MS / 1_000)
        elif move.held_until is None:
            await self._sync_before_take_over(move, read)
        else:
            self._take_over(move, read)

    async def _compare(self, move: Move) -> None:
        """A copy from an earlier life goes on only if it holds all that it should."""
        missing = 0
        slices = Slices(self._clock)
        for size in missing_bytes(move.source, move.future):
            missing += size
            if slices.over:
                await slices.breathe()
                if not self._goes_on(move):
                    return
        if missing:
            log.warning("the copy of %s lacks %d bytes and begins anew", move.hosted.name, missing)
            begin_anew(move.source, move.future, now=self._clock.now_ms())
        move.resumed = False

    async def _copy_chunk(self, move: Move, read: Read) -> None:
        await self._pace.take(read.size)
        if not self._goes_on(move):
            return
        for span in read.spans:
            try:
                data = await self._offload.call(span.read)
            except OSError as error:
                raise StorageFailed(move.source.directory, f"cannot be read: {error}") from error
            await self._append(move, data)
        if move.held_until is not None and self._clock.monotonic_ms() >= move.held_until:
            self._let_sync(move)
        move.unsynced_bytes += read.size
        if move.unsynced_bytes >= SYNC_EVERY_BYTES and self._goes_on(move):
            await self._sync(move)

    async def _append(self, move: Move, data: bytes) -> None:
        """Appends to the future log a few milliseconds at a time. What is stale by now the next `align` cuts off."""
        view, batches, position = memoryview(data), scan_batches(data), 0
        if not batches:
            raise Corrupt(move.source.directory, 0, "a read came back without a whole batch")
        slices = Slices(self._clock)
        for last in range(BATCHES_AT_ONCE - 1, len(batches) + BATCHES_AT_ONCE - 1, BATCHES_AT_ONCE):
            if not self._goes_on(move):
                return
            start, header = batches[min(last, len(batches) - 1)]
            end = start + header.size
            # Verified, because the file may have been cut and written anew while a thread was reading it.
            move.future.append_exact(view[position:end], now=self._clock.now_ms(), verify=True)
            self.bytes_copied += end - position
            position = end
            if slices.over:
                await slices.breathe()

    async def _sync(self, move: Move) -> None:
        to = move.future.written
        try:
            for item in move.future.files_to_sync():
                await self._offload.call(item.sync)
        except OSError as error:
            if self._goes_on(move):
                raise StorageFailed(move.future.directory, f"sync failed: {error}") from error
            return
        move.future.mark_flushed(to)
        move.unsynced_bytes = 0

    # -- taking over

    async def _sync_before_take_over(self, move: Move, read: Read) -> None:
        """From here on nothing may be durable in the source alone: its syncs wait until the copy serves.

        A power cut right after the take-over may leave the copy with no more than what was synced.
        """
        self._append_now(move, read)
        move.hosted.hold_syncs()
        move.held_until = self._clock.monotonic_ms() + HOLD_MS_MAX
        await self._sync(move)

    def _let_sync(self, move: Move) -> None:
        if move.held_until is not None:
            move.held_until = None
            move.hosted.let_sync()

    def _append_now(self, move: Move, read: Read) -> None:
        now = self._clock.now_ms()
        for span in read.spans:
            move.future.append_exact(span.read(), now=now)
        move.future.skip_to(move.source.next, now=now)

    def _take_over(self, move: Move, read: Read) -> None:
        """Copies what is left and lets the future log serve. No await: nobody sees a state in between."""
        hosted, source, future = move.hosted, move.source, move.future
        self._append_now(move, read)
        future.take_over(source)
        successor, old = self._store.succeed(hosted.key)
        assert old is source, "the log that was copied is the one that served"
        hosted.succeeded_by(successor, self._clock.now_ms())
        self._forget(move)
        self._partitions.committed_since_checkpoint = True
        self.moved += 1
        log.info("%s serves from %s", hosted.name, successor.directory)
        self._on_moved(hosted.key)
        task = duty(self._retire(hosted, successor, old), name="retire a log")
        self._retiring[hosted.key] = task
        task.add_done_callback(lambda _done: self._retiring.pop(hosted.key, None))

    async def _retire(self, hosted: Hosted, successor: Log, old: Log) -> None:
        """Removes the old directory when the new one would survive a power cut."""
        end = successor.written
        while hosted.log is successor:
            await self._synced(hosted, end)
            if successor.flushed >= end:
                break
            await asyncio.sleep(WAIT_MS / 1_000)
        if successor.failure is not None:
            log.error("%s is kept: the directory that %s moved to has failed", old.directory, hosted.name)
            return
        # Without them a start after a crash would scan the whole log, and show again what was deleted from it.
        await self._checkpoints.write(*OFFSET_CHECKPOINTS)
        self._store.retire(old, now=self._clock.now_ms())
        while old.name in self._store.departures:
            await self._checkpoints.over()

    async def _synced(self, hosted: Hosted, end: Offset) -> None:
        """Returns when a sync came to `end`, or somebody gave up waiting for one."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        hosted.when_flushed(end, lambda: None if waiting.done() else waiting.set_result(None))
        self._partitions.unsynced(hosted)
        await waiting
