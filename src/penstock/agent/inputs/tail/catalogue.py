"""All files that are known, found by inode, by path and by their beginning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.agent.inputs.tail.identity import Place, Print, digest_of
from penstock.agent.inputs.tail.tracked import NOTHING, Tracked

GONE_MAX: Final = 10_000
"""More files that are gone are not remembered: folders in which files come and go all day."""


class Catalogue:
    """Indexes that are kept right by telling it what changes."""

    def __init__(self) -> None:
        self.files: dict[str, Tracked] = {}
        self._by_identity: dict[tuple[int, int], Tracked] = {}
        self._by_path: dict[str, Tracked] = {}
        self._by_prefix: dict[Print, dict[str, Tracked]] = {}
        self._lengths: dict[int, int] = {}
        """How many files have a prefix of this length."""
        self._gone: dict[str, Tracked] = {}
        self._unseen: dict[str, Tracked] = {}
        self._number = 0

    def __iter__(self) -> Iterator[Tracked]:
        return iter(self.files.values())

    def __len__(self) -> int:
        return len(self.files)

    def next_key(self) -> str:
        self._number += 1
        return str(self._number)

    def add(self, file: Tracked) -> None:
        self.files[file.key] = file
        if file.key.isdigit():
            self._number = max(self._number, int(file.key))
        self._index_prefix(file)
        if file.place is not Place.CUT and file.inode:
            self._by_identity[file.identity] = file
        if file.place is Place.HERE:
            self._by_path[file.path] = file
        elif file.place is Place.UNSEEN:
            self._unseen[file.key] = file
        elif file.place in (Place.GONE, Place.CUT):
            self._gone[file.key] = file

    def remove(self, file: Tracked) -> None:
        self._unplace(file)
        self._unindex_prefix(file)
        self.files.pop(file.key, None)

    def at_path(self, path: str) -> Tracked | None:
        return self._by_path.get(path)

    def paths(self) -> Iterator[tuple[str, Tracked]]:
        """Those that are where their path says."""
        return iter(list(self._by_path.items()))

    def with_identity(self, device: int, inode: int) -> Tracked | None:
        return self._by_identity.get((device, inode))

    def alike(self, head: bytes) -> list[Tracked]:
        """Those whose prefix this beginning has."""
        found: list[Tracked] = []
        for length in [length for length in self._lengths if 0 < length <= len(head)]:
            found.extend(self._by_prefix.get(Print(length, digest_of(head[:length])), {}).values())
        return found

    def grow(self, file: Tracked, prefix: Print) -> None:
        self._unindex_prefix(file)
        file.prefix = prefix
        self._index_prefix(file)

    def put(
        self, file: Tracked, place: Place, *, path: str | None = None, identity: tuple[int, int] | None = None
    ) -> None:
        """It is somewhere else now."""
        self._unplace(file)
        file.place = place
        if path is not None:
            file.path = path
        if identity is not None:
            file.device, file.inode = identity
        if place is not Place.CUT and file.inode:
            self._by_identity[file.identity] = file
        if place is Place.HERE:
            self._by_path[file.path] = file
        elif place is Place.UNSEEN:
            self._unseen[file.key] = file
        elif place in (Place.GONE, Place.CUT):
            self._gone[file.key] = file

    def unseen(self) -> list[Tracked]:
        return list(self._unseen.values())

    def gone(self) -> list[Tracked]:
        """Those that are gone or cut, the longest gone first."""
        return list(self._gone.values())

    def _unplace(self, file: Tracked) -> None:
        if self._by_identity.get(file.identity) is file:
            del self._by_identity[file.identity]
        if self._by_path.get(file.path) is file:
            del self._by_path[file.path]
        self._gone.pop(file.key, None)
        self._unseen.pop(file.key, None)

    def _index_prefix(self, file: Tracked) -> None:
        if file.prefix is not NOTHING and file.prefix.length:
            self._by_prefix.setdefault(file.prefix, {})[file.key] = file
            self._lengths[file.prefix.length] = self._lengths.get(file.prefix.length, 0) + 1

    def _unindex_prefix(self, file: Tracked) -> None:
        same = self._by_prefix.get(file.prefix)
        if same is None or same.pop(file.key, None) is None:
            return
        if not same:
            del self._by_prefix[file.prefix]
        left = self._lengths[file.prefix.length] - 1
        if left:
            self._lengths[file.prefix.length] = left
        else:
            del self._lengths[file.prefix.length]
