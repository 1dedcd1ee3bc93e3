"""Small files into large ones: the same rows in fewer files, swapped in one snapshot beside whoever appends."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.spark.lake.iceberg import snapshots
from penstock.spark.lake.iceberg.data_files import data_files, live_files
from penstock.spark.lake.store import COMMIT_KEY, COMPACT, Compaction, Conflicted
from penstock.spark.lake.tiers import plan

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestEntry
    from pyiceberg.table import Transaction

    from penstock.spark.lake.iceberg.open_table import OpenTable


def compact(store: OpenTable, target_bytes: int, compression: str, *, whole: bool) -> Compaction:
    """Rewrites and swaps, undisturbed by whoever appends meanwhile. `Conflicted` if files were replaced meanwhile."""
    store.refresh()
    table = store.table
    entries = live_files(table, table.current_snapshot())
    removed: list[DataFile] = []
    paths: list[str] = []
    for bin_ in _bins(entries, table.metadata.default_spec_id, target_bytes, whole):
        removed += bin_
        paths.append(_rewrite(store, bin_, compression))
    if not removed:
        return Compaction()
    added = data_files(table.io, table.metadata, paths)
    assert sum(file.record_count for file in added) == sum(file.record_count for file in removed)
    done = Compaction(
        files_removed=len(removed),
        files_added=len(added),
        bytes_removed=sum(file.file_size_in_bytes for file in removed),
        bytes_added=sum(file.file_size_in_bytes for file in added),
    )
    try:
        store.again(lambda transaction: _swap(transaction, removed, added, done))
    except Conflicted:
        # A catalog that did not answer may have done it all the same.
        if not _swapped(store, paths):
            raise
    return done


def _swapped(store: OpenTable, paths: list[str]) -> bool:
    store.refresh()
    live = live_files(store.table, store.table.current_snapshot())
    return set(paths) <= {entry.data_file.file_path for entry in live}


def _bins(entries: Iterable[ManifestEntry], spec_id: int, target_bytes: int, whole: bool) -> Iterator[list[DataFile]]:
    groups: dict[object, list[DataFile]] = defaultdict(list)
    for entry in entries:
        # Files of an older partitioning stay: they are not of one partition of the present one.
        if entry.data_file.spec_id == spec_id:
            groups[entry.data_file.partition].append(entry.data_file)
    for files in groups.values():
        for places in plan([file.file_size_in_bytes for file in files], target_bytes, whole=whole):
            yield [files[place] for place in places]


def _rewrite(store: OpenTable, files: Sequence[DataFile], compression: str) -> str:
    """One file of the rows of `files`, in their order, with the table's present columns."""
    from penstock.spark.lake.parquet_rows import rewrite

    first = files[0].file_path
    # Beside the others of its partition, wherever the writer put those.
    path = f"{first.rpartition('/')[0]}/compacted-{uuid.uuid4()}.parquet"
    rewrite([file.file_path for file in files], path, store.schema(), compression, store.storage)
    return path


def _swap(transaction: Transaction, removed: list[DataFile], added: list[DataFile], done: Compaction) -> None:
    from penstock.spark.lake.iceberg.replacing import ReplaceFiles

    told = {"files": done.files_added, "bytes": done.bytes_added}
    properties = {COMMIT_KEY: json.dumps(told, separators=(",", ":")), snapshots.KIND_KEY: COMPACT}
    with ReplaceFiles(transaction, removed=removed, added=added, same_rows=True, properties=properties):
        pass
