"""The checkpoint that Spark writes, and a note beside it: what of it is in the store already, and who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from penstock.spark.checkpoints.manifest import Stored
from penstock.spark.errors import SparkRoomError
from penstock.whole_files import write_whole

LOCKED_WITHIN_S: Final = 120.0
LOOK_EVERY_S: Final = 0.02

Stamp = tuple[int, int]
"""Size and time of change: Spark puts files in place whole, so another content has another one."""


@dataclass(frozen=True, slots=True)
class Note:
    """What this machine knows of the mirror; written after each copy."""

    place: str
    holder: str
    number: int
    sent: Mapping[str, Stamp] = field(default_factory=dict)
    files: Mapping[str, Stored] = field(default_factory=dict)
    recent: Mapping[int, list[str]] = field(default_factory=dict)
    """The packs of each copy that may still be in the store."""


class LocalCheckpoint:
    """A directory, its note and its lock, side by side."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._note = self.directory.with_name(f"{self.directory.name}.mirror")
        self._lock = self.directory.with_name(f"{self.directory.name}.lock")

    def files(self) -> dict[str, Stamp]:
        """Files that are in place, by their path below the directory. Names that begin with a dot are being written,
        or are checksums of what is sent whole."""
        found: dict[str, Stamp] = {}
        for folder, folders, names in os.walk(self.directory):
            below = Path(folder).relative_to(self.directory)
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                if name.startswith(".") or name.endswith(".tmp"):
                    continue
                try:
                    found[str(below / name)] = stamp_of(os.stat(os.path.join(folder, name)))
                except FileNotFoundError:
                    # Spark tidies up while we look.
                    continue
        return found

    def note(self) -> Note | None:
        """None when there is none, or one that cannot be read: then nothing is known to be in the store."""
        try:
            told = json.loads(self._note.read_text())
            return Note(
                place=told["place"],
                holder=told["holder"],
                number=int(told["number"]),
                sent={name: (int(size), int(time)) for name, (size, time) in told["sent"].items()},
                files={name: Stored(**each) for name, each in told["files"].items()},
                recent={int(number): list(packs) for number, packs in told["recent"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_note(self, note: Note) -> None:
        self._note.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._note, json.dumps(asdict(note)))

    @contextmanager
    def replaced(self) -> Iterator[Path]:
        """The directory will have the files that are put into the one that is given, and no others. Whoever is killed
        meanwhile leaves no note, and begins anew."""
        self._note.unlink(missing_ok=True)
        beside = self.directory.with_name(f"{self.directory.name}.restoring")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        yield beside
        shutil.rmtree(self.directory, ignore_errors=True)
        beside.rename(self.directory)

    def removed(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self._note.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A sink's process and the driver copy one after the other."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        deadline_s = time.monotonic() + LOCKED_WITHIN_S
        with self._lock.open("a") as lock:
            while not _taken(lock.fileno()):
                if time.monotonic() >= deadline_s:
                    raise SparkRoomError(f"{self._lock} is held by another process for {LOCKED_WITHIN_S:g} s")
                time.sleep(LOOK_EVERY_S)
            yield


def place_in(directory: Path, name: str) -> Path:
    """Where a file of a copy belongs; its directory is there."""
    path = directory / name
    if not path.resolve().is_relative_to(directory.resolve()):
        raise SparkRoomError(f"the copied checkpoint names a file outside of itself: {name!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def stamp_of(found: os.stat_result) -> Stamp:
    return found.st_size, found.st_mtime_ns


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
