"""Small files into large ones: the same rows in fewer files, swapped in one snapshot beside whoever appends.

Files of one partition are taken together by size, smallest first, as long as the smaller ones are worth the rewriting
of the next: so a file that grows is rewritten each time it has grown by half, not each time anything came.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.spark.lake.iceberg import snapshots
from penstock.spark.lake.iceberg.data_files import data_files, live_files
from penstock.spark.lake.store import COMMIT_KEY, COMPACT, Compaction, Conflicted

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestEntry
    from pyiceberg.table import Transaction

    from penstock.spark.lake.iceberg.store import IcebergStore

LARGE_ENOUGH: Final = 0.75
"""Of the target: such a file is left alone."""
WORTH: Final = 2
"""A file joins smaller ones if it is at most this many times as large as all of them together."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A file to be planned for; `order` is its place in the table."""

    order: int
    size_bytes: int


def plan(files: Sequence[Sized], target_bytes: int) -> list[list[Sized]]:
    """Which files of one partition become one; each bin in table order. Files in no bin stay."""
    small = sorted(
        (each for each in files if each.size_bytes < target_bytes * LARGE_ENOUGH), key=lambda each: each.size_bytes
    )
    bins: list[list[Sized]] = []
    taken: list[Sized] = []
    total = 0
    for each in small:
        if taken and (total + each.size_bytes > target_bytes or each.size_bytes > total * WORTH):
            bins.append(taken)
            taken, total = [], 0
        taken.append(each)
        total += each.size_bytes
    bins.append(taken)
    return [sorted(each, key=lambda file: file.order) for each in bins if len(each) > 1]


def compact(store: IcebergStore, target_bytes: int, compression: str) -> Compaction:
    """Rewrites and swaps, undisturbed by whoever appends meanwhile. `Conflicted` if files were replaced meanwhile."""
    store.refresh()
    table = store.table
    entries = live_files(table, table.current_snapshot())
    removed: list[DataFile] = []
    paths: list[str] = []
    for bin_ in _bins(entries, table.metadata.default_spec_id, target_bytes):
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


def _swapped(store: IcebergStore, paths: list[str]) -> bool:
    store.refresh()
    live = live_files(store.table, store.table.current_snapshot())
    return set(paths) <= {entry.data_file.file_path for entry in live}


def _bins(entries: Iterable[ManifestEntry], spec_id: int, target_bytes: int) -> Iterator[list[DataFile]]:
    groups: dict[object, list[DataFile]] = defaultdict(list)
    for entry in entries:
        # Files of an older partitioning stay: they are not of one partition of the present one.
        if entry.data_file.spec_id == spec_id:
            groups[entry.data_file.partition].append(entry.data_file)
    for files in groups.values():
        sized = [Sized(order, file.file_size_in_bytes) for order, file in enumerate(files)]
        for chosen in plan(sized, target_bytes):
            yield [files[each.order] for each in chosen]


def _rewrite(store: IcebergStore, files: Sequence[DataFile], compression: str) -> str:
    """One file of the rows of `files`, in their order, with the table's present columns."""
    from penstock.spark.lake.parquet_rows import rewrite

    first = files[0].file_path
    # Beside the others of its partition, wherever the writer put those.
    path = f"{first.rpartition('/')[0]}/compacted-{uuid.uuid4()}.parquet"
    rewrite([file.file_path for file in files], path, store.schema(), compression)
    return path


def _swap(transaction: Transaction, removed: list[DataFile], added: list[DataFile], done: Compaction) -> None:
    from penstock.spark.lake.iceberg.replacing import ReplaceFiles

    told = {"files": done.files_added, "bytes": done.bytes_added}
    properties = {COMMIT_KEY: json.dumps(told, separators=(",", ":")), snapshots.KIND_KEY: COMPACT}
    with ReplaceFiles(transaction, removed=removed, added=added, same_rows=True, properties=properties):
        pass
