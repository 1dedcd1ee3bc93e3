"""One log directory of a node: its lock, its identity, its checkpoints, and whether it still works."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.model.errors import Corrupt, PenstockError
from penstock.model.ids import NodeId, Offset, TopicPartition, Uuid
from penstock.model.ports import File, Files
from penstock.storage.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    OffsetCheckpoint,
)
from penstock.storage.clean_shutdown import read_clean_shutdown, remove_clean_shutdown, write_clean_shutdown
from penstock.storage.flushing import TextWrite
from penstock.storage.meta_properties import (
    MetaProperties,
    check_meta_properties,
    read_meta_properties,
    write_meta_properties,
)

LOCK = ".lock"
UNKNOWN_BYTES = -1


class DirectoryInUse(PenstockError):
    """Another process has the directory open."""


def locked(files: Files, directory: str) -> File:
    """Keeps a directory from every other process until what this gives is closed; DirectoryInUse when one has it."""
    path = f"{directory}/{LOCK}"
    try:
        return files.lock(path)
    except BlockingIOError as taken:
        raise DirectoryInUse(
            f"{directory} is in use by another process (it holds {path}); stop it, or choose another log.dirs"
        ) from taken


class LogDirectory:
    """Offline from its first failure until it is opened again; `why_offline` says what happened."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path.rstrip("/")
        self.id: Uuid | None = None
        self.why_offline: str | None = "not opened"
        self.log_count = 0
        # Set by the operator: what is here is served, but nothing new is placed here.
        self.cordoned = False
        self.clean = False
        self.clean_broker_epoch: int | None = None
        self.recovery_points: dict[TopicPartition, Offset] = {}
        self.log_starts: dict[TopicPartition, Offset] = {}
        self.high_watermarks: dict[TopicPartition, Offset] = {}
        self.cleaner_offsets: dict[TopicPartition, Offset] = {}
        self._lock: File | None = None

    @property
    def online(self) -> bool:
        return self.why_offline is None

    def room(self) -> tuple[int, int]:
        """(total bytes, usable bytes) of its volume; UNKNOWN_BYTES while it is offline or does not tell.

        The sizes are a courtesy; a directory that really failed is found by those who write to it.
        """
        if not self.online:
            return UNKNOWN_BYTES, UNKNOWN_BYTES
        try:
            return self.files.usage(self.path)
        except OSError:
            return UNKNOWN_BYTES, UNKNOWN_BYTES

    def open(self, cluster_id: str, node_id: int, new_uuid: Callable[[], Uuid]) -> None:
        """Locks the directory, checks whose it is (a fresh one becomes ours) and reads its checkpoints.

        DirectoryInUse and WrongDirectory are mistakes of the operator. OSError means that the disk does not work.
        """
        self.files.makedirs(self.path)
        self._lock = locked(self.files, self.path)
        found = read_meta_properties(self.files, self.path)
        if found is not None:
            check_meta_properties(self.path, found, cluster_id, node_id)
        if found is None or found.directory_id is None:
            found = MetaProperties(cluster_id, NodeId(node_id), new_uuid())
            write_meta_properties(self.files, self.path, found)
        self.id = found.directory_id
        self.clean_broker_epoch = read_clean_shutdown(self.files, self.path)
        self.clean = self.clean_broker_epoch is not None
        remove_clean_shutdown(self.files, self.path)
        self.recovery_points = self._read(RECOVERY_POINTS)
        self.log_starts = self._read(LOG_STARTS)
        self.high_watermarks = self._read(HIGH_WATERMARKS)
        self.cleaner_offsets = self._read(CLEANER_OFFSETS)
        self.why_offline = None

    def fail(self, why: str) -> None:
        if self.why_offline is None:
            self.why_offline = why
        self.unlock()

    def close(self, broker_epoch: int | None) -> None:
        """Lets go of the directory; with a broker epoch it was closed cleanly and says so."""
        if self.online and broker_epoch is not None:
            write_clean_shutdown(self.files, self.path, broker_epoch)
        self.why_offline = "closed"
        self.unlock()

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> TextWrite:
        """The write of one offset checkpoint, to be done wherever the caller likes."""
        return TextWrite(self.files, f"{self.path}/{name}", OffsetCheckpoint.text(offsets))

    def forget(self, name: TopicPartition) -> None:
        """The log of this name lives here no longer."""
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks, self.cleaner_offsets):
            offsets.pop(name, None)

    def _read(self, name: str) -> dict[TopicPartition, Offset]:
        try:
            return OffsetCheckpoint(self.files, f"{self.path}/{name}").read()
        except Corrupt:
            # Every checkpoint only saves work: without one, recovery scans more and replication tells the rest.
            return {}

    def __repr__(self) -> str:
        return f"LogDirectory({self.path}, {self.why_offline or 'online'})"
