"""A table's history as commits, and which of its snapshots can go without taking a data file with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.errors import Missing
from penstock.spark.lake.store import APPEND, COMMIT_KEY, COMPACT, OTHER, OVERWRITE, Commit

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

KIND_KEY: Final = "penstock.kind"
"""In a snapshot's summary: what we made it for. Iceberg calls the first overwrite of an empty table an append."""
_KINDS: Final = frozenset({APPEND, OVERWRITE, COMPACT})


def version_of(snapshot: Snapshot | None) -> int:
    return (snapshot.sequence_number or 0) if snapshot is not None else 0


def history(metadata: TableMetadata, after: int = -1) -> Iterator[Commit]:
    """Oldest first, along the line that leads to the current snapshot."""
    line = [each for each in _line(metadata) if version_of(each) > after]
    for snapshot in reversed(line):
        yield commit_of(snapshot)


def _line(metadata: TableMetadata) -> Iterator[Snapshot]:
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


def spare_appends(metadata: TableMetadata, *, keep_newest: int, before_ms: int) -> list[int]:
    """Ids of snapshots that can go before they are old: their child is an append, which has all their files.

    A commit every few seconds makes more snapshots in a week than metadata that is written whole with each commit can
    bear. What goes is a step in time travel; the last state before a compaction or overwrite stays until it is old.
    """
    line = list(_line(metadata))
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    # A snapshot whose parent has gone no longer says what came before it, so only direct children count.
    contained = {each.parent_snapshot_id for each in line if _appended(each)}
    return [
        each.snapshot_id
        for each in line[keep_newest:]
        if each.snapshot_id in contained and each.timestamp_ms < before_ms and each.snapshot_id not in named
    ]


def _appended(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation.value == "append"
