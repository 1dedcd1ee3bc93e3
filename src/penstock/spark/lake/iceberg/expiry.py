"""Old snapshots, and files that nobody names.

A file goes in two ways only: it was named by snapshots that are expired now and by none that stays, or nobody ever
named it and it is old enough that no running task can still be about to commit it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyarrow import fs

from penstock.spark.lake.iceberg import snapshots
from penstock.spark.lake.iceberg.features import check_understood
from penstock.spark.lake.places import absolute, is_local, opened
from penstock.spark.lake.store import Expiry

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from penstock.spark.lake.iceberg.open_table import OpenTable

_AT_ONCE: Final = 8
_OURS: Final = "_penstock"
"""The ledger's directory under the table."""


def expire(store: OpenTable, older_than: datetime) -> Expiry:
    """Forgets snapshots older than that, except those that branches and tags name, and deletes what only they named."""
    before_ms = round(older_than.timestamp() * 1000)

    def old(metadata: TableMetadata) -> tuple[list[int], list[int]]:
        named = {ref.snapshot_id for ref in metadata.refs.values()}
        return [], [
            each.snapshot_id
            for each in metadata.snapshots
            if each.timestamp_ms < before_ms and each.snapshot_id not in named
        ]

    return _forget(store, old)


def thin(store: OpenTable, thinning: snapshots.Thinning) -> Expiry:
    """Forgets snapshots that are not old but too many; see `snapshots.spare`."""
    return _forget(store, lambda metadata: snapshots.spare(metadata, thinning))


Choose = Callable[["TableMetadata"], tuple[list[int], list[int]]]
"""Snapshots to forget: those that no data file goes with, and those with files."""


def _forget(store: OpenTable, choose: Choose) -> Expiry:
    store.refresh()
    if not any(choose(store.table.metadata)):
        return Expiry()
    gone: list[Snapshot] = []
    files_go = False

    def change(transaction: Transaction) -> None:
        from penstock.spark.lake.iceberg.transactions import ForgetSnapshots

        nonlocal files_go
        metadata = transaction.table_metadata
        bare, with_files = choose(metadata)
        files_go = bool(with_files)
        chosen = {*bare, *with_files}
        gone[:] = [each for each in metadata.snapshots if each.snapshot_id in chosen]
        if chosen:
            ForgetSnapshots(transaction, sorted(chosen)).commit()

    store.again(change)
    return Expiry(snapshots_removed=len(gone), files_removed=delete(store, _only_in(store, gone, files_go)))


def _only_in(store: OpenTable, gone: Sequence[Snapshot], files_go: bool) -> list[str]:
    """Files that were reachable through `gone` and are no longer: data before manifests before their lists.

    In that order nothing is left behind that nobody can find any more if we are stopped in between.
    """
    io = store.table.io
    staying = _manifests(io, store.table.metadata.snapshots)
    manifests = _manifests(io, gone)
    going = manifests.keys() - staying.keys()
    data: set[str] = set()
    if going and files_go:
        data = _data(io, [manifests[path] for path in going]) - _data(io, staying.values(), live=True)
    lists = {each.manifest_list for each in gone} - {each.manifest_list for each in store.table.metadata.snapshots}
    return [*sorted(data), *sorted(going), *sorted(lists)]


def _manifests(io: FileIO, of: Iterable[Snapshot]) -> dict[str, ManifestFile]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda snapshot: snapshot.manifests(io), of)
        return {each.manifest_path: each for manifests in found for each in manifests}


def _data(io: FileIO, manifests: Iterable[ManifestFile], *, live: bool = False) -> set[str]:
    """Every file that these manifests name; unless `live`, those that they name as deleted too."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda manifest: manifest.fetch_manifest_entry(io, discard_deleted=live), manifests)
        return {entry.data_file.file_path for entries in found for entry in entries}


def orphans(store: OpenTable, older_than: datetime) -> list[str]:
    """Files under the table that no snapshot and no metadata names, older than that."""
    store.refresh()
    table = store.table
    check_understood(table.metadata, store.place.name)
    manifests = _manifests(table.io, table.metadata.snapshots)
    named = _data(table.io, manifests.values()) | manifests.keys()
    named |= {each.manifest_list for each in table.metadata.snapshots}
    named |= {each.metadata_file for each in table.metadata.metadata_log} | {table.metadata_location}
    named |= {each.statistics_path for each in table.metadata.statistics}
    plain = {_bare(each) for each in named}
    files, root = opened(store.location, store.storage)
    found = files.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    prefix = store.location.removesuffix(root)
    return sorted(
        f"{prefix}{each.path}"
        for each in found
        if each.type == fs.FileType.File
        and f"/{_OURS}/" not in each.path.removeprefix(root)
        and each.path not in plain
        and each.mtime is not None
        and each.mtime.timestamp() < older_than.timestamp()
    )


def _bare(path: str) -> str:
    """As the file system lists it: without a scheme."""
    whole = absolute(path)
    return whole if is_local(whole) else whole.partition("://")[2]


def delete(store: OpenTable, paths: Iterable[str]) -> int:
    """How many went; one that is gone already is no error: two may be tidying up."""
    io = store.table.io
    removed = 0
    for path in paths:
        try:
            io.delete(path)
            removed += 1
        except FileNotFoundError:
            continue
    return removed
