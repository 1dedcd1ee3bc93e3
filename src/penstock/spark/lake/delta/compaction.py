"""Few files instead of many small ones, beside whoever appends.

Files are rewritten first, which takes long; then they are exchanged in one commit that may only follow the very version
it saw. When another commit came between, the exchange is tried again as long as every file it replaces is still there.
Offsets do not move: readers of the table see the same rows.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction, RemoveAction, Transaction

from penstock.spark.lake.delta.actions import add_action, remove_action
from penstock.spark.lake.parquet_files import FileShape
from penstock.spark.lake.places import opened
from penstock.spark.lake.store import COMPACT, Compaction, Conflicted, TableFile, WrittenFile
from penstock.spark.lake.tiers import plan
from penstock.spark.lake.writing import RollingFiles
from penstock.spark.stores.storage import Storage

EXCHANGE_BYTES_MAX: Final = 1 << 30
"""Work that one commit carries: what was exchanged stays exchanged when a later part fails."""
EXCHANGE_TRIES: Final = 10


class Compactable(Protocol):
    """What is asked of the store whose files become fewer."""

    @property
    def location(self) -> str: ...

    @property
    def storage(self) -> Storage: ...

    def refresh(self) -> None: ...

    def schema(self) -> pa.Schema: ...

    def partition_by(self) -> list[str]: ...

    def files(self) -> list[TableFile]: ...

    def transact(
        self,
        actions: list[AddAction | RemoveAction],
        told: Mapping[str, Any],
        marks: list[Transaction],
        /,
        *,
        retries: int | None,
    ) -> object: ...


def plan_compaction(files: Sequence[TableFile], target_bytes: int, *, whole: bool) -> list[list[TableFile]]:
    """Which files become one: of one partition, as `tiers` has it. Pure."""
    by_partition: dict[tuple[tuple[str, str | None], ...], list[TableFile]] = defaultdict(list)
    for file in files:
        by_partition[tuple(file.partition.items())].append(file)
    return [
        [within[place] for place in places]
        for within in by_partition.values()
        for places in plan([file.size_bytes for file in within], target_bytes, whole=whole)
    ]


def compact(store: Compactable, target_bytes: int, compression: str, *, whole: bool) -> Compaction:
    """`Conflicted` when others exchange the same files."""
    store.refresh()
    done = Compaction()
    for part in _in_parts(plan_compaction(store.files(), target_bytes, whole=whole)):
        done = _sum(done, _exchange(store, part, target_bytes, compression))
    return done


def _in_parts(bins: list[list[TableFile]]) -> Iterator[list[list[TableFile]]]:
    part: list[list[TableFile]] = []
    for each in bins:
        part.append(each)
        if sum(file.size_bytes for files in part for file in files) >= EXCHANGE_BYTES_MAX:
            yield part
            part = []
    if part:
        yield part


def _exchange(store: Compactable, bins: list[list[TableFile]], target_bytes: int, compression: str) -> Compaction:
    old = [file for files in bins for file in files]
    new = _rewritten(store, bins, target_bytes, compression)
    actions: list[AddAction | RemoveAction] = [add_action(file, data_change=False) for file in new]
    actions += [remove_action(file, store.location, data_change=False) for file in old]
    told = {"kind": COMPACT, "files": len(new), "bytes": sum(file.size_bytes for file in new)}
    for _ in range(EXCHANGE_TRIES):
        with contextlib.suppress(Conflicted):
            store.transact(actions, told, [], retries=0)
            store.refresh()
            return _told(old, new)
        store.refresh()
        there = {file.path for file in store.files()}
        if f"{store.location}/{new[0].path}" in there:
            # It had landed; only the answer was lost.
            return _told(old, new)
        if not all(file.path in there for file in old):
            break
    raise Conflicted(f"others changed {store.location} while it was compacted; the next compaction takes it up")


def _rewritten(
    store: Compactable, bins: list[list[TableFile]], target_bytes: int, compression: str
) -> list[WrittenFile]:
    partition_by = set(store.partition_by())
    schema = pa.schema([field for field in store.schema() if field.name not in partition_by])
    found: list[WrittenFile] = []
    for number, files in enumerate(bins):
        # What is read is no larger than the target: twice that, so that one file comes of it.
        prefix = f"part-{number:05d}-{uuid.uuid4().hex}"
        shape = FileShape(store.location, prefix, compression, 2 * target_bytes, store.storage)
        rolling = RollingFiles(shape, schema, within=dict(files[0].partition))
        try:
            for file in files:
                for batch in _batches(file.path, schema, store.storage):
                    rolling.add(batch)
            found += rolling.finish()
        except BaseException:
            rolling.drop()
            raise
    return found


def _batches(path: str, schema: pa.Schema, storage: Storage) -> Iterator[pa.RecordBatch]:
    """The rows of a file, which may be older than some columns of the table."""
    files, bare = opened(path, storage)
    with pq.ParquetFile(bare, filesystem=files) as file:
        held = set(file.schema_arrow.names)
        for batch in file.iter_batches(columns=[name for name in schema.names if name in held]):
            columns = [
                batch.column(field.name).cast(field.type)
                if field.name in held
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _told(old: Sequence[TableFile], new: Sequence[WrittenFile]) -> Compaction:
    return Compaction(len(old), len(new), sum(file.size_bytes for file in old), sum(file.size_bytes for file in new))


def _sum(one: Compaction, other: Compaction) -> Compaction:
    return Compaction(
        one.files_removed + other.files_removed,
        one.files_added + other.files_added,
        one.bytes_removed + other.bytes_removed,
        one.bytes_added + other.bytes_added,
    )
