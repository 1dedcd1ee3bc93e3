"""A table's own record of its commits, which outlives the cleaning of the format's log.

<location>/_penstock/ledger/00000000000000000042.json       one commit, written right after it
<location>/_penstock/ledger/rolled-…-….jsonl                256 of them in one file
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.spark.lake.store import Commit


class Ledger:
    """`Ledger(location)`: `location` is `TableStore.location`."""

    def __init__(self, location: str) -> None:
        self._location = location

    def append(self, commit: Commit) -> None:
        """Writes down one commit; the same one twice is one entry."""

    def entries(self) -> Iterator[Commit]:
        """Every commit that was written down, oldest first; torn files of a crash are passed over."""
        return iter(())

    def complete_through(self) -> int:
        """The version up to which nothing is missing; -1 when nothing is there."""
        return -1

    def backfill(self, commits: Iterable[Commit]) -> int:
        """Writes down those that are missing (give it `store.commits(after=ledger.complete_through())`); how many."""
        return 0
