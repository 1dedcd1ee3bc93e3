"""A table's history as commits, and which of its snapshots can go without taking a data file with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.errors import Missing
from penstock.spark.lake.store import APPEND, COMMIT_KEY, COMPACT, MERGE, OTHER, OVERWRITE, Commit

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

KIND_KEY: Final = "penstock.kind"
"""In a snapshot's summary: what we made it for. Iceberg calls the first overwrite of an empty table an append."""
HOUR_MS: Final = 3_600_000
_KINDS: Final = frozenset({APPEND, OVERWRITE, MERGE, COMPACT})


def version_of(snapshot: Snapshot | None) -> int:
    return (snapshot.sequence_number or 0) if snapshot is not None else 0


def history(metadata: TableMetadata, after: int = -1) -> Iterator[Commit]:
    """Oldest first, along the line that leads to the current snapshot."""
    line = [each for each in line_of(metadata) if version_of(each) > after]
    for snapshot in reversed(line):
        yield commit_of(snapshot)


def line_of(metadata: TableMetadata) -> Iterator[Snapshot]:
    """From the current snapshot back. Expired snapshots leave holes, so parents alone would not lead far."""
    current = metadata.current_snapshot()
    if current is None:
        return
    parents = {each.snapshot_id: each.parent_snapshot_id for each in metadata.snapshots}
    older = sorted(metadata.snapshots, key=version_of, reverse=True)
    branches = {ref.snapshot_id for name, ref in metadata.refs.items() if name != "main"}
    aside = {found for head in branches for found in _ancestors(head, parents)} - _ancestors(
        current.snapshot_id, parents
    )
    yield from (each for each in older if each.snapshot_id not in aside and version_of(each) <= version_of(current))


def _ancestors(head: int, parents: dict[int, int | None]) -> set[int]:
    found: set[int] = set()
    at: int | None = head
    while at is not None and at not in found:
        found.add(at)
        at = parents.get(at)
    return found


def commit_of(snapshot: Snapshot) -> Commit:
    told, kind = told_in(snapshot)
    return Commit.of_told(
        told,
        version=version_of(snapshot),
        time_ms=snapshot.timestamp_ms,
        kind=kind,
        snapshot=str(snapshot.snapshot_id),
    )


def told_in(snapshot: Snapshot) -> tuple[dict[str, Any], str]:
    """(what the writer told, kind); nothing and `other` for snapshots of other writers."""
    summary = snapshot.summary
    kind = summary.get(KIND_KEY) if summary is not None else None
    text = summary.get(COMMIT_KEY) if summary is not None else None
    told: dict[str, Any] = json.loads(text) if text else {}
    return told, kind if kind in _KINDS else OTHER


def added_rows(metadata: TableMetadata) -> dict[int, int]:
    return {
        version_of(each): int(each.summary.get("added-records") or 0)
        for each in metadata.snapshots
        if each.summary is not None
    }


def snapshot_of(table: Table, version: int | None) -> Snapshot | None:
    """The snapshot of a version; None when the table has none yet."""
    current = table.current_snapshot()
    if version is None or (version == 0 and current is None):
        return current
    found = next((each for each in table.snapshots() if version_of(each) == version), None)
    if found is None:
        kept = sorted(version_of(each) for each in table.snapshots())
        told = f"it has {kept[0]} to {kept[-1]}, with holes" if kept else "it has none"
        raise Missing(f"version {version} of {'.'.join(table.name())} is not there, or no longer: {told}")
    return found


@dataclass(frozen=True, slots=True)
class Thinning:
    """How many snapshots a table keeps before age alone lets them go. Metadata is written whole with each commit."""

    keep_newest: int
    most: int
    """States that were overwritten stay up to this many snapshots."""
    before_ms: int
    """Younger ones stay."""
    readers_before_ms: int
    """Younger ones stay if files go with them: somebody may be reading those."""
    followed_since_ms: int | None = None
    """Of younger ones of a table that a stream follows the first of each hour stays, and all that files go with."""


def spare(metadata: TableMetadata, thinning: Thinning) -> tuple[list[int], list[int]]:
    """Ids of snapshots that can go before they are old: (those that no data file goes with, those with files).

    A commit every few seconds makes more snapshots in a week than metadata can bear. First go appends whose child is an
    append and has all their files: a step of time travel. Then states before a compaction, whose rows the compacted
    files have. States that were overwritten go last.
    """
    line = list(line_of(metadata))
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    child = {each.parent_snapshot_id: _operation(each) for each in line}
    there = {each.snapshot_id for each in line}
    anchors = _first_of_hours(line, thinning.followed_since_ms)
    bare: list[int] = []
    with_files: list[int] = []
    for position, each in enumerate(line):
        if position < thinning.keep_newest or each.snapshot_id in named or each.timestamp_ms >= thinning.before_ms:
            continue
        if each.snapshot_id in anchors:
            continue
        # What is no append stays as long as its parent: it alone tells what became of that. So a child that has gone
        # was an append, which some later one contains.
        after = child.get(each.snapshot_id, "append")
        last_word = _operation(each) != "append" and each.parent_snapshot_id in there
        if after == "append" and not last_word:
            bare.append(each.snapshot_id)
        elif thinning.followed_since_ms is not None and each.timestamp_ms >= thinning.followed_since_ms:
            continue
        elif each.timestamp_ms < thinning.readers_before_ms and (after == "replace" or position >= thinning.most):
            with_files.append(each.snapshot_id)
    return bare, with_files


def _first_of_hours(line: Sequence[Snapshot], since_ms: int | None) -> set[int]:
    """What a stream that stands anywhere in an hour can count from. What came before the first one is told by it."""
    if since_ms is None:
        return set()
    first: dict[int, int] = {}
    for each in line:
        if each.timestamp_ms >= since_ms:
            first[each.timestamp_ms // HOUR_MS] = each.snapshot_id
    return set(first.values())


def _operation(snapshot: Snapshot) -> str:
    return snapshot.summary.operation.value if snapshot.summary is not None else ""
