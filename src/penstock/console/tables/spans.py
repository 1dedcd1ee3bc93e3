"""Which commit of a table brought an offset. Ranges tile, so the commit is found by a binary search. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from penstock.spark.lake.ranges import RangeKey
from penstock.spark.lake.store import BATCHES, OVERWRITE, Commit

COMMITS_MAX: Final = 20_000
"""So many of a table's newest commits are remembered."""


class _Tiles:
    """The ranges of one partition, in the order in which they were committed."""

    __slots__ = ("ends", "sorted", "starts", "versions")

    def __init__(self) -> None:
        self.starts, self.ends, self.versions = array("q"), array("q"), array("q")
        self.sorted = True

    def put(self, start: int, end: int, version: int) -> None:
        self.sorted = self.sorted and (not self.starts or start >= self.ends[-1])
        self.starts.append(start)
        self.ends.append(end)
        self.versions.append(version)

    def version_of(self, offset: int) -> int | None:
        if self.sorted:
            at = bisect_right(self.starts, offset) - 1
            return self.versions[at] if at >= 0 and offset < self.ends[at] else None
        # Batch writes may bring the same offsets again; then the newest counts.
        spans = zip(reversed(self.starts), reversed(self.ends), reversed(self.versions), strict=True)
        return next((version for start, end, version in spans if start <= offset < end), None)


class SpanIndex:
    """Fed with commits as they come, oldest first."""

    def __init__(self) -> None:
        self._commits: dict[int, Commit] = {}
        self._tiles: dict[RangeKey, _Tiles] = {}
        self.names: dict[str, set[str]] = {}
        """Of all commits that ever were put: names of topics, and the ids that they had. "" where none was known."""
        self.unexplained = False
        """Whether a batch brought rows and said of no topic that they are from it."""
        self.replaced_by = -1
        """The newest version that replaced all rows before it."""
        self.dead: dict[str, int] = {}
        """Dead letters by query."""

    def put(self, commits: Iterable[Commit]) -> None:
        for commit in commits:
            self._put(commit)
        if len(self._commits) > COMMITS_MAX * 2:
            self._forget()

    def _put(self, commit: Commit) -> None:
        for span in commit.ranges:
            self.names.setdefault(span.topic, set()).add(span.topic_id)
            self._tiles.setdefault(span.key, _Tiles()).put(span.start, span.end, commit.version)
        if commit.kind in BATCHES:
            self.unexplained |= not commit.ranges and commit.rows_in_its_files > 0
            if commit.dead:
                self.dead[commit.query_id] = self.dead.get(commit.query_id, 0) + commit.dead
        if commit.kind == OVERWRITE:
            self.replaced_by = commit.version
        self._commits[commit.version] = replace(commit, ranges=())

    def _forget(self) -> None:
        kept = dict(list(self._commits.items())[-COMMITS_MAX:])
        tiles: dict[RangeKey, _Tiles] = {}
        for key, old in self._tiles.items():
            for start, end, version in zip(old.starts, old.ends, old.versions, strict=True):
                if version in kept:
                    tiles.setdefault(key, _Tiles()).put(start, end, version)
        self._commits, self._tiles = kept, tiles

    @property
    def newest(self) -> int:
        return max(self._commits, default=-1)

    def commits(self) -> list[Commit]:
        """Newest first, without their ranges."""
        return [self._commits[version] for version in sorted(self._commits, reverse=True)]

    @property
    def queries(self) -> set[str]:
        """The ids of queries that have committed batches."""
        return {commit.query_id for commit in self._commits.values() if commit.query_id}

    def find(self, topic: str, topic_id: str, partition: int, offset: int) -> Commit | None:
        """The commit whose ranges hold an offset."""
        for name in (topic_id, topic):
            for ordinal in range(_ORDINALS):
                tiles = self._tiles.get(RangeKey(name, partition, ordinal)) if name else None
                version = tiles.version_of(offset) if tiles is not None else None
                if version is not None:
                    return self._commits.get(version)
        return None

    def first(self, key: RangeKey) -> int | None:
        """The first offset of a partition that is remembered."""
        tiles = self._tiles.get(key)
        return min(tiles.starts) if tiles is not None and tiles.starts else None


_ORDINALS: Final = 8
"""Queries that read one topic by more sources than that are not known."""
