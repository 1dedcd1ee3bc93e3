"""What versions of an Iceberg table brought, from its snapshots.

A sink that commits often thins out the snapshots of appends: what they brought stands in the manifests of the next one,
and the counts of both say whether that is all. Where they do not, or the snapshot before is gone, nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.spark.lake.following.versions import Brought, gone
from penstock.spark.lake.iceberg.data_files import partition_texts
from penstock.spark.lake.iceberg.snapshots import line_of, told_in, version_of
from penstock.spark.lake.iceberg.store import IcebergStore
from penstock.spark.lake.places import absolute
from penstock.spark.lake.store import COMPACT, TableFile

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestEntry
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def identity(store: IcebergStore) -> str:
    return str(store.table.metadata.table_uuid)


def brought(store: IcebergStore, begin: int, end: int) -> list[Brought]:
    """Versions [begin, end); those of appends whose snapshots are gone are told with the next one."""
    table = store.table
    line = sorted(line_of(table.metadata), key=version_of)
    before = [each for each in line if version_of(each) < begin]
    last = before[-1] if before else None
    if last is None and begin > 1:
        raise gone(store.location, begin - 1, "its snapshot has expired")
    found: list[Brought] = []
    for snapshot in (each for each in line if begin <= version_of(each) < end):
        found += _of_snapshot(store.location, table, snapshot, last, begin)
        last = snapshot
    return found


def _of_snapshot(where: str, table: Table, snapshot: Snapshot, last: Snapshot | None, begin: int) -> Iterator[Brought]:
    version, operation = version_of(snapshot), snapshot.summary.operation.value if snapshot.summary else ""
    follows = snapshot.parent_snapshot_id == (last.snapshot_id if last is not None else None)
    if operation == "replace" or told_in(snapshot)[1] == COMPACT:
        if not follows:
            raise gone(where, version, "the snapshot before it has expired")
        return
    entries = [entry for entry in _entries(table, snapshot) if _is_data(entry)]
    since = version_of(last)
    new = [each for each in entries if _lives(each) and since < (each.sequence_number or 0) <= version]
    removed = [each for each in entries if not _lives(each) and each.snapshot_id == snapshot.snapshot_id]
    if not follows and (removed or _total(snapshot) - _total(last) != sum(_rows(each) for each in new)):
        raise gone(where, version, "snapshots between it and the one before have expired, and rows went with them")
    files = [_file(table, each) for each in new if (each.sequence_number or 0) >= begin]
    yield Brought(version, tuple(files), tuple(_file(table, each) for each in removed))


def _entries(table: Table, snapshot: Snapshot) -> list[ManifestEntry]:
    return [
        entry
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    ]


def _is_data(entry: ManifestEntry) -> bool:
    from pyiceberg.manifest import DataFileContent

    return bool(entry.data_file.content == DataFileContent.DATA)


def _lives(entry: ManifestEntry) -> bool:
    from pyiceberg.manifest import ManifestEntryStatus

    return bool(entry.status != ManifestEntryStatus.DELETED)


def _rows(entry: ManifestEntry) -> int:
    return int(entry.data_file.record_count)


def _total(snapshot: Snapshot | None) -> int:
    if snapshot is None or snapshot.summary is None:
        return 0
    return int(snapshot.summary.get("total-records") or 0)


def _file(table: Table, entry: ManifestEntry) -> TableFile:
    return TableFile(
        path=absolute(entry.data_file.file_path),
        size_bytes=entry.data_file.file_size_in_bytes,
        rows=entry.data_file.record_count,
        partition=partition_texts(table.metadata, entry.data_file),
    )
