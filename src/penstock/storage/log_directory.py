"""One log directory of a node: its lock, its identity, its checkpoints, and whether it still works."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from penstock.model.errors import Corrupt, PenstockError
from penstock.model.ids import Millis, NodeId, Offset, TopicPartition, Uuid
from penstock.model.ports import File, Files
from penstock.storage.checkpoints import OFFSET_CHECKPOINTS, OffsetCheckpoint, checkpoint_text
from penstock.storage.clean_shutdown import read_clean_shutdown, remove_clean_shutdown, write_clean_shutdown
from penstock.storage.meta_properties import (
    MetaProperties,
    check_meta_properties,
    read_meta_properties,
    write_meta_properties,
)

LOCK = ".lock"
NOT_OPENED = "not opened"
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


class CheckpointWrite:
    """One offset checkpoint of a directory with the content that it had when this was made."""

    __slots__ = ("_checkpoint", "_lines", "_names", "directory")

    def __init__(self, directory: LogDirectory, checkpoint: str, entries: Iterable[tuple[TopicPartition, str]]) -> None:
        self.directory, self._checkpoint = directory, checkpoint
        lines = dict(entries)
        self._names, self._lines = frozenset(lines), list(lines.values())
        directory.outdated.discard(checkpoint)

    @property
    def path(self) -> str:
        return f"{self.directory.path}/{self._checkpoint}"

    def sync(self) -> None:
        directory = self.directory
        directory.files.write_atomic(self.path, checkpoint_text(self._lines))
        directory.named[self._checkpoint] = self._names


class Said(NamedTuple):
    """What an offset checkpoint said when its directory was opened, and when it was written."""

    offsets: dict[TopicPartition, Offset]
    at: Millis


class LogDirectory:
    """Offline from its first failure until it is opened again; `why_offline` says what happened."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path.rstrip("/")
        self.id: Uuid | None = None
        self.why_offline: str | None = NOT_OPENED
        self.log_count = 0
        # Set by the operator: what is here is served, but nothing new is placed here.
        self.cordoned = False
        self.clean = False
        self.clean_broker_epoch: int | None = None
        # What each offset checkpoint said. Only while logs are opened: from then on each log knows its own offsets.
        self.said: dict[str, Said] = {}
        # Of whom each of them speaks on disk, and which of them say what is not true any more.
        self.named: dict[str, frozenset[TopicPartition]] = dict.fromkeys(OFFSET_CHECKPOINTS, frozenset())
        self.outdated: set[str] = set()
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
        self.said = {checkpoint: self._read(checkpoint) for checkpoint in OFFSET_CHECKPOINTS}
        self.named = {checkpoint: frozenset(said.offsets) for checkpoint, said in self.said.items()}
        self.outdated = set()
        self.why_offline = None

    def fail(self, why: str) -> None:
        if self.why_offline in (None, NOT_OPENED):
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

    def speaks_of(self, name: TopicPartition) -> bool:
        """Whether an offset checkpoint has an entry of this name on disk."""
        return any(name in names for names in self.named.values())

    def _read(self, checkpoint: str) -> Said:
        path = f"{self.path}/{checkpoint}"
        try:
            return Said(OffsetCheckpoint(self.files, path).read(), self.files.mtime_ms(path))
        except (FileNotFoundError, Corrupt):
            # Every checkpoint only saves work: without one, recovery scans more and replication tells the rest.
            return Said({}, Millis(0))

    def __repr__(self) -> str:
        return f"LogDirectory({self.path}, {self.why_offline or 'online'})"
