"""The Delta log, read: application transactions (our offsets) and the history of commits.

    _delta_log/00000000000000000042.json                  one version: a JSON action a line
    _delta_log/00000000000000000040.checkpoint.parquet    all that held at version 40
    _delta_log/_last_checkpoint                           where the newest of those is

Transactions survive the cleaning of the log; commit metadata does not.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.errors import SparkRoomError
from penstock.spark.lake.delta.thinning import LogFile
from penstock.spark.lake.places import opened, read_text
from penstock.spark.lake.store import COMMIT_KEY, COMPACT, OTHER, Commit
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

DIRECTORY: Final = "_delta_log"


class DeltaLog:
    """The log of one table. Follows it: what was read once is not read again."""

    def __init__(self, location: str, storage: Storage = FROM_ENVIRONMENT) -> None:
        self._files, root = opened(location, storage)
        self._root = f"{root}/{DIRECTORY}"
        self._version = -1
        self._transactions: dict[str, int] = {}

    def transactions(self, version: int) -> Mapping[str, int]:
        """Application id → its version, as of `version` of the table or newer."""
        if self._version < version:
            checkpoint = self._last_checkpoint()
            if checkpoint > self._version:
                self._transactions = self._of_checkpoint(checkpoint)
                self._version = checkpoint
        while (text := self._text(self._version + 1)) is not None:
            self._apply(text)
            self._version += 1
        if self._version < version:
            raise SparkRoomError(f"{self._root} lacks version {self._version + 1}: a file of the table's log is gone")
        return self._transactions

    def commits(self, after: int) -> Iterator[Commit]:
        """Versions above `after` whose commit is still there, rising."""
        version = after + 1
        text = self._text(version)
        if text is None:
            # Cleaned away, or not there yet: only then is the directory listed, which may be long.
            version = min((each for each in self.versions() if each > after), default=version)
            text = self._text(version)
        while text is not None:
            yield _commit(version, text)
            version += 1
            text = self._text(version)

    def actions(self, version: int) -> list[dict[str, Any]] | None:
        """What one version did; None when its file is no longer there, or not yet."""
        text = self._text(version)
        return None if text is None else list(_actions(text))

    def stamp(self, version: int) -> int | None:
        """When that version was written, as a sign that the table is still the same one; None when it is not there."""
        when = self._files.get_file_info(f"{self._root}/{_name(version)}").mtime_ns
        return None if when is None else int(when)

    def begun(self) -> bool:
        """Whether this is certainly a table's log; False says nothing."""
        signs = self._files.get_file_info([f"{self._root}/_last_checkpoint", f"{self._root}/{_name(0)}"])
        return any(sign.is_file for sign in signs)

    def files(self) -> list[LogFile]:
        from pyarrow import fs

        found = self._files.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return [LogFile(each.base_name, _time(each.mtime_ns)) for each in found if each.is_file]

    def remove(self, names: Iterable[str]) -> int:
        """Files that others may have removed already; how many were there."""
        removed = 0
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self._files.delete_file(f"{self._root}/{name}")
                removed += 1
        return removed

    def _apply(self, text: str) -> None:
        for action in _actions(text):
            if "txn" in action:
                self._transactions[action["txn"]["appId"]] = int(action["txn"]["version"])

    def versions(self) -> list[int]:
        """Those whose commit is still there, in no order."""
        return [int(name[:20]) for name in self._names() if name.endswith(".json") and name[:-5].isdigit()]

    def _names(self) -> list[str]:
        from pyarrow import fs

        found = self._files.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return [each.base_name for each in found]

    def _text(self, version: int) -> str | None:
        try:
            return read_text(self._files, f"{self._root}/{_name(version)}")
        except FileNotFoundError:
            return None

    def _last_checkpoint(self) -> int:
        try:
            return int(json.loads(read_text(self._files, f"{self._root}/_last_checkpoint"))["version"])
        except (FileNotFoundError, ValueError, KeyError):
            return -1

    def _of_checkpoint(self, version: int) -> dict[str, int]:
        """One file, several parts, or the newer kind with a name of its own; each may be Parquet or JSON."""
        found: dict[str, int] = {}
        for name in self._names():
            if name.startswith(f"{version:020d}.checkpoint."):
                found |= _checkpointed(self._files, f"{self._root}/{name}")
        return found


def _checkpointed(files: FileSystem, path: str) -> dict[str, int]:
    if path.endswith(".json"):
        actions = [action["txn"] for action in _actions(read_text(files, path)) if "txn" in action]
    else:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, filesystem=files) as file:
            if "txn" not in file.schema_arrow.names:
                return {}
            rows = file.read(columns=["txn"]).column("txn")
            actions = [row for row in rows.filter(rows.is_valid()).to_pylist() if row["appId"] is not None]
    return {action["appId"]: int(action["version"]) for action in actions}


def _actions(text: str) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in text.splitlines() if line)


def _commit(version: int, text: str) -> Commit:
    info: dict[str, Any] = {}
    for action in _actions(text):
        info = action.get("commitInfo", info)
    time_ms = int(info.get("timestamp", 0))
    try:
        told = json.loads(info[COMMIT_KEY])
        return Commit.of_told(told, version=version, time_ms=time_ms, kind=told["kind"])
    except (KeyError, ValueError, TypeError):
        kind = COMPACT if info.get("operation") == "OPTIMIZE" else OTHER
        return Commit(version=version, time_ms=time_ms, kind=kind)


def _time(nanoseconds: int | None) -> datetime:
    # One that has no time is as good as new: nothing is removed for want of knowledge.
    return datetime.fromtimestamp((nanoseconds or time.time_ns()) / 1e9, UTC)


def _name(version: int) -> str:
    return f"{version:020d}.json"
