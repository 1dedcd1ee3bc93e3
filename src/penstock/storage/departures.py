"""Logs that are on their way out: taken out of service, with their directories still under the partition's name.

A directory gets a name of its own only when no offset checkpoint on disk speaks of it any more: so whoever is given the
partition's name next finds nothing said about it. The entries of many logs leave the checkpoints together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.ids import Millis, TopicPartition
from penstock.storage.checkpoints import OFFSET_CHECKPOINTS
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.names import Kind


class Leaving(NamedTuple):
    """A directory that will be called `kind`, and that nobody serves since `since`, by the time of day.

    `log` is None where a directory was found that nobody could open: such a one is a stray.
    """

    name: TopicPartition
    path: str
    directory: LogDirectory
    kind: Kind
    since: Millis
    log: Log | None


class Departures:
    """Who leaves, in order, by path."""

    __slots__ = ("_by_path", "_names")

    def __init__(self) -> None:
        self._by_path: dict[str, Leaving] = {}
        self._names: dict[TopicPartition, int] = {}

    def __iter__(self) -> Iterator[Leaving]:
        return iter(list(self._by_path.values()))

    def __len__(self) -> int:
        return len(self._by_path)

    def __contains__(self, name: TopicPartition) -> bool:
        """Whether a directory, wherever it is, still has this name or is spoken of by it."""
        return name in self._names

    def add(self, leaving: Leaving) -> None:
        assert leaving.path not in self._by_path, "a directory leaves once"
        self._by_path[leaving.path] = leaving
        self._names[leaving.name] = self._names.get(leaving.name, 0) + 1

    def pop(self, leaving: Leaving) -> bool:
        """False when it is none of them any more."""
        if self._by_path.pop(leaving.path, None) is None:
            return False
        self._names[leaving.name] -= 1
        if not self._names[leaving.name]:
            del self._names[leaving.name]
        return True

    def outdated(self, directory: LogDirectory) -> list[str]:
        """The checkpoints of a directory that must be written anew before its logs can leave."""
        names = [leaving.name for leaving in self._by_path.values() if leaving.directory is directory]
        return [
            checkpoint
            for checkpoint in OFFSET_CHECKPOINTS
            if checkpoint in directory.outdated or not directory.named[checkpoint].isdisjoint(names)
        ]
