"""Writes snapshots of the published image and lets go of the log that they make superfluous.

A snapshot is due when enough bytes were published since the last one, or enough time passed. It is written in
slices of a few milliseconds from a copy of the image, under a name that does not count, synced and renamed, all of it
off the loop. Only then old snapshots and segments go: at every instant one whole snapshot and all of the log after it
are on the disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from penstock.metadata.snapshot import snapshot_records
from penstock.model.errors import StorageFailed
from penstock.model.ids import Epoch, Millis, Offset
from penstock.server.loops.duty import duty
from penstock.server.loops.slices import Slices
from penstock.server.quorum.snapshot_file import RECORDS_PER_BATCH, CheckpointWriter, SnapshotId, read_timestamp

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.model.ports import Clock, File, Files, Offload
    from penstock.protocol.disk.raft_records import VotersRecord
    from penstock.server.quorum.metadata_driver import MetadataDriver

log = logging.getLogger("penstock.snapshots")

PARTIAL_SUFFIX: Final = ".part"


Installed = Callable[[SnapshotId, int, Millis], None]
"""Told of a snapshot that came from the leader: its size, and when the last record in it was written."""


class SnapshottedLog(Protocol):
    """What the quorum driver does for snapshots."""

    directory: str

    def quorum_state_at(self, end: Offset) -> tuple[int, VotersRecord | None]:
        """(kraft.version, voters; None when they are given in the configuration) before `end`."""

    def size_bytes(self) -> int: ...
    def forget_before(self, to: Offset) -> None:
        """Moves the start of the log; segments wholly before it go."""

    def snapshot_added(self, snapshot: SnapshotId) -> None:
        """A whole snapshot is on the disk: replicas may be sent to it."""

    def snapshot_removed(self, snapshot: SnapshotId) -> None:
        """It is not served any more, and its file goes."""

    def when_installed(self, listener: Installed) -> None:
        """Calls back when a snapshot of the leader has taken the place of the log."""


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """When to write one and how much to keep. A limit of -1 keeps everything."""

    max_bytes_between: int = 20 << 20
    max_interval_ms: int = 3_600_000
    retention_bytes: int = 100 << 20
    retention_ms: int = 7 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A snapshot on the disk."""

    id: SnapshotId
    size: int
    timestamp: Millis


class SnapshotDriver:
    """Owns the checkpoint files of the metadata log."""

    def __init__(
        self,
        files: Files,
        offload: Offload,
        clock: Clock,
        metadata: MetadataDriver,
        quorum: SnapshottedLog,
        settings: SnapshotSettings,
        on_failure: Callable[[StorageFailed], None],
    ) -> None:
        self._files, self._offload, self._clock = files, offload, clock
        self._metadata, self._quorum, self._settings = metadata, quorum, settings
        self._on_failure = on_failure
        self._kept: list[Kept] = []
        self._bytes_at_last = 0
        self._last_ms = clock.monotonic_ms()
        self._writing: asyncio.Task[None] | None = None
        metadata.on_advance(self.consider)
        quorum.when_installed(self.installed)

    @property
    def kept(self) -> list[SnapshotId]:
        """The snapshots on the disk, the oldest first."""
        return [each.id for each in self._kept]

    def found(self, ids: list[SnapshotId]) -> None:
        """Tells which snapshots the directory had at the start."""
        self._kept = [self._measure(each) for each in sorted(ids)]

    def installed(self, snapshot: SnapshotId, size: int, timestamp: Millis) -> None:
        """A snapshot came from the leader; those before it go, as the log before it has."""
        self._kept = [each for each in self._kept if each.id.end < snapshot.end]
        self._kept.append(Kept(snapshot, size, timestamp))
        self._bytes_at_last, self._last_ms = self._metadata.bytes_published, self._clock.monotonic_ms()
        while len(self._kept) > 1:
            self._remove_oldest()

    def consider(self) -> None:
        """Starts a snapshot when one is due."""
        if self._writing is not None or self._metadata.image.in_transaction:
            return
        new_bytes = self._metadata.bytes_published - self._bytes_at_last
        if new_bytes == 0:
            return
        interval_ms = self._settings.max_interval_ms
        overdue = interval_ms > 0 and self._clock.monotonic_ms() - self._last_ms >= interval_ms
        if new_bytes >= self._settings.max_bytes_between or overdue:
            self._writing = duty(self._write(), name="metadata snapshot")

    async def write_now(self) -> SnapshotId | None:
        """A snapshot of what is published at this moment; None when there is nothing new to write."""
        while self._writing is not None:
            await asyncio.shield(self._writing)
        if self._metadata.image.in_transaction or self._present(self._next_id()):
            return None
        wanted = self._next_id()
        self._writing = duty(self._write(), name="metadata snapshot")
        await asyncio.shield(self._writing)
        return wanted

    async def close(self) -> None:
        """Gives up a snapshot that is being written; what is left of it is removed at the next start."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)

    def crash(self) -> None:
        """As if the process had been killed."""
        if self._writing is not None:
            self._writing.cancel()

    def _next_id(self) -> SnapshotId:
        image = self._metadata.image
        return SnapshotId(Offset(image.offset + 1), Epoch(max(image.epoch, 0)))

    def _present(self, wanted: SnapshotId) -> bool:
        return any(each.id.end >= wanted.end for each in self._kept)

    async def _write(self) -> None:
        """A chore: one that fails for a reason of our own is tried again when the next is due."""
        try:
            await self._write_one()
        except (OSError, StorageFailed) as failure:
            self._on_failure(StorageFailed(self._quorum.directory, f"the snapshot could not be written: {failure}"))
        except Exception:
            log.exception("the metadata snapshot failed and will be tried again")
        finally:
            self._writing = None

    async def _write_one(self) -> None:
        wanted, image = self._next_id(), self._metadata.image.copy()
        self._bytes_at_last, self._last_ms = self._metadata.bytes_published, self._clock.monotonic_ms()
        path = f"{self._quorum.directory}/{wanted.file_name}"
        timestamp = self._metadata.last_timestamp
        file = await self._offload.call(emptied, self._files, path + PARTIAL_SUFFIX)
        try:
            size = await self._fill(file, wanted, image, timestamp)
            await self._offload.call(file.sync)
        finally:
            file.close()
        await self._offload.call(self._files.rename, path + PARTIAL_SUFFIX, path)
        await self._offload.call(self._files.sync_dir, self._quorum.directory)
        if self._present(wanted):
            # Meanwhile the leader sent one: the same, or a newer one.
            if wanted not in self.kept:
                await self._offload.call(self._files.remove, path)
            return
        self._kept.append(Kept(wanted, size, timestamp))
        self._quorum.snapshot_added(wanted)
        log.info("wrote metadata snapshot %s, %d bytes", wanted.file_name, size)
        self.clean()

    async def _fill(self, file: File, wanted: SnapshotId, image: ClusterImage, timestamp: Millis) -> int:
        writer = CheckpointWriter(wanted.epoch, self._clock.now_ms())
        pieces = self._pieces(writer, wanted, image, timestamp)
        position = 0
        while slice_ := self._slice(pieces):
            position += await self._offload.call(file.pwritev, slice_, position)
        return position

    def _slice(self, pieces: Iterator[bytes]) -> list[bytes]:
        """As much as can be made in a few milliseconds; empty when there is no more."""
        slices = Slices(self._clock)
        made: list[bytes] = []
        for piece in pieces:
            made.append(piece)
            if slices.over:
                break
        return made

    def _pieces(
        self, writer: CheckpointWriter, wanted: SnapshotId, image: ClusterImage, timestamp: Millis
    ) -> Iterator[bytes]:
        kraft_version, voters = self._quorum.quorum_state_at(wanted.end)
        yield writer.header(timestamp, kraft_version if voters is not None else None, voters)
        records = snapshot_records(image)
        while batch := list(islice(records, RECORDS_PER_BATCH)):
            yield writer.data(batch)
        yield writer.footer()

    def clean(self) -> None:
        """Removes the oldest snapshots that retention does not ask for, and the log before those that stay."""
        while len(self._kept) > 1 and self._expired(self._kept[0]):
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        oldest = self._kept.pop(0)
        self._quorum.forget_before(self._kept[0].id.end)
        self._quorum.snapshot_removed(oldest.id)
        log.info("removed metadata snapshot %s", oldest.id.file_name)

    def _expired(self, snapshot: Kept) -> bool:
        total = self._quorum.size_bytes() + sum(each.size for each in self._kept)
        if 0 <= self._settings.retention_bytes < total:
            return True
        return 0 <= self._settings.retention_ms < self._clock.now_ms() - snapshot.timestamp

    def _measure(self, snapshot: SnapshotId) -> Kept:
        path = f"{self._quorum.directory}/{snapshot.file_name}"
        return Kept(snapshot, self._files.size(path), read_timestamp(self._files, path))


def emptied(files: Files, path: str) -> File:
    """A file to be filled from its beginning."""
    file = files.open(path, create=True)
    file.truncate(0)
    return file
