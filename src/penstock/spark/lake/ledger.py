"""A table's own record of its commits, which outlives the cleaning of the format's log.

    <location>/_penstock/ledger/00000000000000000042.json              one commit, written right after it
    <location>/_penstock/ledger/rolled-…256-…511-256-1f00c3a2.jsonl    many of them in one file: first, last, how many

A driver that dies between commit and ledger leaves a hole; whoever commits or audits next fills it from the commit
metadata that the table still has. Names beginning with an underscore are left alone by both formats' clean-ups.

Everything here may be done by several drivers at once: an entry's content follows from its version alone, rolled files
have names of their own and come before the single ones go, and readers take each version once.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from penstock.spark.lake.places import absolute, opened, read_text, write_whole
from penstock.spark.lake.store import LOST, Commit
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

DIRECTORY: Final = "_penstock/ledger"
ROLL_AT: Final = 256
"""So many single entries become one file."""

_ROLLED: Final = "rolled-"


class Ledger:
    """`Ledger(location, storage)`: both are the `TableStore`'s. Keeps what it has seen; make a new one to look anew."""

    def __init__(self, location: str, storage: Storage = FROM_ENVIRONMENT) -> None:
        self._location = absolute(location)
        self._storage = storage
        self._made = False
        self._known: set[int] | None = None
        self._complete = -1
        self._singles = 0

    def append(self, commit: Commit) -> None:
        """Writes down one commit; the same one twice is one entry."""
        files, root = self._opened()
        if not self._made:
            files.create_dir(root, recursive=True)
            self._made = True
        write_whole(files, f"{root}/{_single(commit.version)}", json.dumps(commit.to_json()) + "\n")
        self._singles += 1
        if self._known is not None:
            self._know(commit.version)
            if self._singles >= ROLL_AT:
                self.roll()

    def entries(self) -> Iterator[Commit]:
        """Every commit that was written down, oldest first; torn files of a crash are passed over."""
        found = self._read()
        return (found[version] for version in sorted(found))

    def complete_through(self) -> int:
        """The version up to which nothing is missing; -1 when nothing is there."""
        if self._known is None:
            self._known = self._versions()
            self._complete = min(self._known, default=0) - 1
            self._know_more()
        return self._complete

    def backfill(self, commits: Iterable[Commit]) -> int:
        """Writes down those that are missing; how many. `commits` rise, as `store.commits(after=complete_through())`.

        Versions that the table itself has forgotten are written down as lost, so that nobody looks for them again.
        """
        done = 0
        expected = self.complete_through() + 1
        begun = bool(self._known)
        for commit in commits:
            if commit.version < expected:
                continue
            for version in range(expected, commit.version) if begun else ():
                done += self._fill(Commit(version=version, time_ms=commit.time_ms, kind=LOST))
            done += self._fill(commit)
            begun, expected = True, commit.version + 1
        return done

    def _fill(self, commit: Commit) -> int:
        assert self._known is not None, "backfill has read the ledger"
        if commit.version in self._known:
            return 0
        files, root = self._opened()
        if _parsed(_text(files, f"{root}/{_single(commit.version)}")):
            # Another driver wrote it down.
            self._know(commit.version)
            return 0
        if not self._known:
            self._complete = commit.version - 1
        self.append(commit)
        return 1

    def _know(self, version: int) -> None:
        assert self._known is not None, "the ledger was read"
        self._known.add(version)
        self._know_more()

    def _know_more(self) -> None:
        assert self._known is not None, "the ledger was read"
        while self._complete + 1 in self._known:
            self._complete += 1

    def roll(self) -> None:
        """Puts single entries into one file. Nothing is removed before that file is whole."""
        files, root = self._opened()
        singles = {name: commit for name, commit in self._singles_of(files, root) if commit is not None}
        self._singles = 0
        if len(singles) < ROLL_AT:
            return
        kept = sorted(singles.values(), key=lambda commit: commit.version)
        span = f"{kept[0].version:020d}-{kept[-1].version:020d}-{len(kept)}"
        name = f"{_ROLLED}{span}-{os.urandom(4).hex()}.jsonl"
        write_whole(files, f"{root}/{name}", "".join(json.dumps(each.to_json()) + "\n" for each in kept))
        for single in singles:
            _remove(files, f"{root}/{single}")

    def _opened(self) -> tuple[FileSystem, str]:
        files, path = opened(self._location, self._storage)
        return files, f"{path}/{DIRECTORY}"

    def _read(self) -> dict[int, Commit]:
        """Single files first: one that is rolled meanwhile is then found in the rolled file."""
        files, root = self._opened()
        found: dict[int, Commit] = {}
        self._singles = 0
        for _, commit in self._singles_of(files, root):
            if commit is not None:
                found[commit.version] = commit
                self._singles += 1
        for name in _names(files, root):
            if name.startswith(_ROLLED):
                for commit in _parsed(_text(files, f"{root}/{name}")):
                    found.setdefault(commit.version, commit)
        return found

    def _versions(self) -> set[int]:
        """Which versions are there. A rolled file without holes says it by its name: it may hold years."""
        files, root = self._opened()
        singles = {commit.version for _, commit in self._singles_of(files, root) if commit is not None}
        self._singles = len(singles)
        for name in _names(files, root):
            if name.startswith(_ROLLED):
                first, last, count = map(int, name.removeprefix(_ROLLED).split("-")[:3])
                if count == last - first + 1:
                    singles.update(range(first, last + 1))
                else:
                    singles.update(each.version for each in _parsed(_text(files, f"{root}/{name}")))
        return singles

    def _singles_of(self, files: FileSystem, root: str) -> Iterator[tuple[str, Commit | None]]:
        for name in _names(files, root):
            if name.endswith(".json"):
                yield name, next(iter(_parsed(_text(files, f"{root}/{name}"))), None)


def _single(version: int) -> str:
    return f"{version:020d}.json"


def _names(files: FileSystem, root: str) -> list[str]:
    from pyarrow import fs

    return [each.base_name for each in files.get_file_info(fs.FileSelector(root, allow_not_found=True))]


def _text(files: FileSystem, path: str) -> str:
    try:
        return read_text(files, path)
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _parsed(text: str) -> list[Commit]:
    """Whole lines; one that a crash cut is not there."""
    found = []
    for line in text.splitlines():
        try:
            found.append(Commit.of_json(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _remove(files: FileSystem, path: str) -> None:
    # Another driver may roll at the same time: both files then have it.
    with contextlib.suppress(FileNotFoundError):
        files.delete_file(path)
