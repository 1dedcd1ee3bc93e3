"""What versions did whose files of the log are gone: kept aside for streams that follow the table.

    <location>/_penstock/history/00000000000000000100-00000000000000000612.jsonl    one version a line

A log is short for the sake of whoever commits, and a stream that was paused needs what came meanwhile. So of a table
that is followed the actions that moved rows are put here before their files go, for as long as the follower has asked.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.lake.places import absolute, opened, read_text, write_whole
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from penstock.spark.lake.delta.log import DeltaLog

DIRECTORY: Final = "_penstock/history"
VERSIONS_A_FILE: Final = 512
_MOVES: Final = ("add", "remove")


class DeltaHistory:
    """Of one table. What was read last is remembered: versions are asked for in their order."""

    def __init__(self, location: str, storage: Storage = FROM_ENVIRONMENT) -> None:
        self._location, self._storage = absolute(location), storage
        self._read: dict[int, list[dict[str, Any]]] = {}

    def put_aside(self, log: DeltaLog, versions: Iterable[int]) -> None:
        """Before their files go. Versions that are gone already stay what they were."""
        told = {each: actions for each in sorted(versions) if (actions := log.actions(each)) is not None}
        if not told:
            return
        files, root = self._opened()
        files.create_dir(root, recursive=True)
        numbers = list(told)
        for at in range(0, len(numbers), VERSIONS_A_FILE):
            part = numbers[at : at + VERSIONS_A_FILE]
            lines = "".join(json.dumps({"version": each, "actions": _moves(told[each])}) + "\n" for each in part)
            write_whole(files, f"{root}/{part[0]:020d}-{part[-1]:020d}.jsonl", lines)

    def actions(self, version: int) -> list[dict[str, Any]] | None:
        """What a version did to rows; None when it is not kept."""
        if version not in self._read:
            files, root = self._opened()
            for name, first, last, _ in self._files(files, root):
                if first <= version <= last:
                    with contextlib.suppress(FileNotFoundError):
                        self._read = dict(_lines(read_text(files, f"{root}/{name}")))
                    if version in self._read:
                        break
        return self._read.get(version)

    def forget(self, before: datetime) -> None:
        """Files that were written before then, and so have older versions alone."""
        files, root = self._opened()
        for name, _, _, written in list(self._files(files, root)):
            if written < before:
                with contextlib.suppress(FileNotFoundError):
                    files.delete_file(f"{root}/{name}")

    def _opened(self) -> tuple[FileSystem, str]:
        files, path = opened(self._location, self._storage)
        return files, f"{path}/{DIRECTORY}"

    def _files(self, files: FileSystem, root: str) -> Iterator[tuple[str, int, int, datetime]]:
        from pyarrow import fs

        for each in files.get_file_info(fs.FileSelector(root, allow_not_found=True)):
            first, _, last = each.base_name.removesuffix(".jsonl").partition("-")
            if each.base_name.endswith(".jsonl") and first.isdigit() and last.isdigit():
                yield each.base_name, int(first), int(last), each.mtime or datetime.now(UTC)


def _moves(actions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that moved rows, with their statistics and without the rest of the log."""
    return [
        {kind: each[kind]}
        for each in actions
        for kind in _MOVES
        if kind in each and bool(each[kind].get("dataChange", True))
    ]


def _lines(text: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    for line in text.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            told = json.loads(line)
            yield int(told["version"]), list(told["actions"])
