"""Keeping the Delta log short: every commit lists its directory, several times, at about 0.1 ms a file.

A stream that commits every ten seconds leaves 8,640 files a day, and Delta's own cleaning waits for a month. What a
checkpoint holds needs no commits from before it, so they go after an hour (other engines' long transactions look at
what was committed since they began), or sooner when they are many. Of the checkpoints, one an hour stays for a week, as
a version to go back to. Ranges of offsets are in the ledger before anything goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

KEEP_NEWEST: Final = 100
KEEP_ALL: Final = timedelta(hours=1)
COMMITS_MOST: Final = 500
"""So many make a commit slow: beyond it the newest stay, whatever their age."""
KEEP_HOURLY: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the log: a commit, a checkpoint or a part of one, a checksum."""

    name: str
    time: datetime

    @property
    def version(self) -> int | None:
        """None for files that are of no version."""
        return int(self.name[:20]) if self.name[:20].isdigit() and len(self.name) > 20 else None

    @property
    def is_checkpoint(self) -> bool:
        return ".checkpoint." in self.name


def plan_thinning(files: Iterable[LogFile], *, newest: int, written_down: int, now: datetime) -> list[str]:
    """Names of the files that may go, oldest first. Pure.

    `newest` is the table's version, `written_down` the last one that the ledger has with all before it.
    """
    versions: dict[int, list[LogFile]] = defaultdict(list)
    for file in files:
        if file.version is not None:
            versions[file.version].append(file)
    checkpoints = {version: _made(found) for version, found in versions.items() if any(f.is_checkpoint for f in found)}
    anchors = [
        version
        for version, made in checkpoints.items()
        if version <= min(newest - KEEP_NEWEST, written_down + 1)
        and (made < now - KEEP_ALL or version <= newest - COMMITS_MOST)
    ]
    if not anchors:
        return []
    kept = _hourly({version: made for version, made in checkpoints.items() if made >= now - KEEP_HOURLY})
    return [
        file.name
        for version in sorted(versions)
        if version < max(anchors)
        for file in versions[version]
        if not (file.is_checkpoint and version in kept)
    ]


def _made(files: Iterable[LogFile]) -> datetime:
    return max(file.time for file in files if file.is_checkpoint)


def _hourly(checkpoints: dict[int, datetime]) -> set[int]:
    """The last of each hour."""
    last = {made.replace(minute=0, second=0, microsecond=0): version for version, made in sorted(checkpoints.items())}
    return set(last.values())
