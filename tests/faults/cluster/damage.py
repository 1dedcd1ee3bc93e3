"""Every kind of file that a data directory has, and what can happen to it while its node is down."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.faults.cluster.shim import Calls, Shim

METADATA = "__cluster_metadata-0"


class Place(NamedTuple):
    """A kind of file: where it lies and which of several it is, the first or the last by name."""

    directory: str
    pattern: str
    last: bool = True
    absent: bool = False
    """Whether there is none yet because nobody has needed it; then an empty one is made for the first segment."""

    def there(self, data_dir: Path) -> bool:
        return any((data_dir / self.directory).glob(self.pattern))

    def find(self, data_dir: Path) -> Path:
        if self.absent:
            segment = min((data_dir / self.directory).glob("*.log"))
            segment.with_suffix(self.pattern.removeprefix("*")).touch()
        found = sorted((data_dir / self.directory).glob(self.pattern))
        assert found, f"there is no {self.pattern} in {data_dir / self.directory}"
        return found[-1 if self.last else 0]


def kinds(topic: str) -> dict[str, Place]:
    """Of a node that has stopped in order and holds `topic-0`, which has a sealed segment."""
    partition = f"{topic}-0"
    return {
        "meta.properties": Place("", "meta.properties"),
        "bootstrap.checkpoint": Place("", "bootstrap.checkpoint"),
        "recovery-point-offset-checkpoint": Place("", "recovery-point-offset-checkpoint"),
        "log-start-offset-checkpoint": Place("", "log-start-offset-checkpoint"),
        "replication-offset-checkpoint": Place("", "replication-offset-checkpoint"),
        "cleaner-offset-checkpoint": Place("", "cleaner-offset-checkpoint"),
        "clean shutdown": Place("", ".kafka_cleanshutdown"),
        "lock": Place("", ".lock"),
        "active segment": Place(partition, "*.log"),
        "sealed segment": Place(partition, "*.log", last=False),
        "active offset index": Place(partition, "*.index"),
        "sealed offset index": Place(partition, "*.index", last=False),
        "active time index": Place(partition, "*.timeindex"),
        "sealed time index": Place(partition, "*.timeindex", last=False),
        "transaction index": Place(partition, "*.txnindex", last=False, absent=True),
        "producer snapshot": Place(partition, "*.snapshot"),
        "leader epochs": Place(partition, "leader-epoch-checkpoint"),
        "partition.metadata": Place(partition, "partition.metadata"),
        "metadata segment": Place(METADATA, "*.log"),
        "metadata offset index": Place(METADATA, "*.index"),
        "metadata time index": Place(METADATA, "*.timeindex"),
        "metadata producer snapshot": Place(METADATA, "*.snapshot"),
        "metadata leader epochs": Place(METADATA, "leader-epoch-checkpoint"),
        "metadata partition.metadata": Place(METADATA, "partition.metadata"),
        "quorum-state": Place(METADATA, "quorum-state"),
        "newest metadata snapshot": Place(METADATA, "*.checkpoint"),
        "oldest metadata snapshot": Place(METADATA, "*.checkpoint", last=False),
    }


_CONFIRMED = "an entry is believed if the batch that it names says so; one that only makes a search longer stays"
HARMLESS = {
    "bootstrap.checkpoint": "what a new cluster begins with; read before there is any metadata, and never again",
    "lock": "held, never read",
    "meta.properties": "its lines are read by their names; what is behind them is of no name",
    "partition.metadata": "its two lines are read by their names; what is behind them is of no name",
    "metadata partition.metadata": "there is one metadata log, whose id never differs",
    "transaction index": "there are no transactions, so one that is empty or gone tells the truth",
    "metadata producer snapshot": "nobody produces to the metadata log with a sequence",
    "oldest metadata snapshot": "only the newest that can be read is read and sent",
    "active offset index": _CONFIRMED,
    "sealed offset index": _CONFIRMED,
    "active time index": _CONFIRMED,
    "sealed time index": _CONFIRMED,
    "metadata offset index": _CONFIRMED,
    "metadata time index": _CONFIRMED,
}
"""Kinds that may stay as they were damaged, when all was asked for and was right; and why nothing else can happen."""

MADE_UNDER_ANOTHER_NAME = {
    "active segment": "what is missing is copied from the leader, into the segment that is the last one then",
    "producer snapshot": "an older one and the log tell the same, and the next is taken at the end of that time",
}
"""Kinds that are repaired although a file that is gone does not come back."""


def _empty(path: Path, _chance: random.Random) -> None:
    path.write_bytes(b"")


def _halve(path: Path, _chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes() or b"\0")
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _scribble(path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.randbytes(max(64, path.stat().st_size)))


def _zero(path: Path, _chance: random.Random) -> None:
    """What a file system may leave whose journal had the size and not the bytes."""
    path.write_bytes(bytes(max(64, path.stat().st_size)))


def _extend(path: Path, chance: random.Random) -> None:
    with path.open("ab") as file:
        file.write(chance.randbytes(100))


def _remove(path: Path, _chance: random.Random) -> None:
    path.unlink()


def _make_directory(path: Path, _chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    "emptied": _empty,
    "halved": _halve,
    "flipped": _flip,
    "scribbled": _scribble,
    "zeroed": _zero,
    "extended": _extend,
    "removed": _remove,
    "a directory": _make_directory,
}
UNREADABLE = "unreadable"


class Case(NamedTuple):
    kind: str
    damage: str
    crashed: bool = False
    """Whether the node was killed before, and not stopped in order."""

    def __str__(self) -> str:
        return f"{self.kind} {self.damage} after a {'crash' if self.crashed else 'stop'}"


def every_case(topic: str, chance: random.Random) -> list[Case]:
    """Each kind with each damage, after a crash or a stop, in any order; those after a crash come first.

    A node that refuses is down already for the next case, if that one wants it to be down in the same way.
    """
    found = [
        # Only a stop leaves the mark of a stop.
        Case(kind, damage, crashed=kind != "clean shutdown" and chance.random() < 0.5)
        for kind in kinds(topic)
        for damage in (*DAMAGES, UNREADABLE)
    ]
    return sorted(chance.sample(found, len(found)), key=lambda case: not case.crashed)


def harm(case: Case, path: Path, shim: Shim, chance: random.Random) -> None:
    """The disk gives back no byte of an unreadable file, in this life and the next, until the shim is mended."""
    if case.damage == UNREADABLE:
        shim.fail(path, Calls.OPENS | Calls.READS)
    else:
        DAMAGES[case.damage](path, chance)


class Backup:
    """A copy of a data directory, for what its node rightly refuses."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir, self._copy = data_dir, data_dir.with_name("backup")
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(data_dir, self._copy)

    def restore(self) -> None:
        shutil.rmtree(self._data_dir)
        shutil.copytree(self._copy, self._data_dir)
