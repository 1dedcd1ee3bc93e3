"""Which files lie in the folder, and which of them have come to rest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from penstock.agent.inputs.spooldir.settings import SpoolDirSettings

_DONE: Final = re.compile(r"\.done(?:\.\d+)?$")


@dataclass(frozen=True, slots=True)
class Facts:
    """What must stay as it is from the beginning to the end."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Facts:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Search:
    """Sees the folder again and again. `search` blocks: call it in a thread, never in two at once."""

    def __init__(self, settings: SpoolDirSettings) -> None:
        self._settings = settings
        self._not_into = {os.path.abspath(settings.errors)}
        if settings.done_directory is not None:
            self._not_into.add(os.path.abspath(settings.done_directory))
        self._since: dict[str, tuple[Facts, float]] = {}

    def search(self, now_ms: float) -> tuple[list[tuple[str, Facts]], int]:
        """The files that are at rest, oldest first, and how many are not. Raises `OSError` for the folder itself."""
        seen: dict[str, tuple[Facts, float]] = {}
        for path, facts in self._files(self._settings.directory):
            known = self._since.get(path)
            seen[path] = known if known is not None and known[0] == facts else (facts, now_ms)
        self._since = seen
        rested = [(path, facts) for path, (facts, since) in seen.items() if now_ms - since >= self._settings.settle_ms]
        rested.sort(key=lambda pair: (pair[1].modified_ns, pair[0]))
        return rested, len(seen) - len(rested)

    def _files(self, folder: Path | str) -> Iterator[tuple[str, Facts]]:
        with os.scandir(folder) as listing:
            entries = list(listing)
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    if self._settings.subdirectories and os.path.abspath(entry.path) not in self._not_into:
                        yield from self._files(entry.path)
                elif entry.is_file() and self._wanted(entry.name):
                    yield os.path.abspath(entry.path), Facts.of(entry.stat())
            except FileNotFoundError:
                continue

    def _wanted(self, name: str) -> bool:
        if _DONE.search(name) or not fnmatchcase(name, self._settings.pattern):
            return False
        return not any(fnmatchcase(name, glob) for glob in self._settings.exclude)
