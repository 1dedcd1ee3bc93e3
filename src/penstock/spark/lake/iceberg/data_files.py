"""Parquet files as entries of manifests: what a commit adds, what a version has."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.errors import SparkRoomError
from penstock.spark.lake.iceberg.features import check_understood
from penstock.spark.lake.store import NotUnderstood

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

_AT_ONCE: Final = 8
"""Footers and manifests read at the same time: waiting, mostly, where files are far away."""


class ForeignDeletes(NotUnderstood):
    """The table has rows that another engine deleted beside the data files; reading the files alone would show them."""


def data_files(io: FileIO, metadata: TableMetadata, paths: Iterable[str]) -> list[DataFile]:
    """What manifests say of Parquet files that tasks wrote: rows, bounds, and the partition that their rows are of."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda path: _data_file(io, metadata, path), paths))


def _data_file(io: FileIO, metadata: TableMetadata, path: str) -> DataFile:
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    try:
        found = parquet_file_to_data_file(io, metadata, path)
    except OverflowError:
        # A record may have a time of any year: Parquet can tell the bounds of such a column, and Python cannot.
        found = parquet_file_to_data_file(io, _without_bounds_of_times(metadata), path)
    nulls = found.null_value_counts or {}
    for position, field in enumerate(metadata.spec().fields):
        # A value beyond the bounds that Parquet keeps (4 KB) or a mixed file would land in the wrong partition.
        wanted = found.record_count if found.partition[position] is None else 0
        if nulls.get(field.source_id, 0) != wanted:
            raise SparkRoomError(
                f"{path} cannot enter partition {field.name}: its rows have no single value of at most 4 KB there"
            )
    return found


def _without_bounds_of_times(metadata: TableMetadata) -> TableMetadata:
    """The same table, of whose times no bounds are asked, except where it is split by them."""
    from pyiceberg.types import DateType, TimestampType, TimestamptzType

    schema = metadata.schema()
    needed = {field.source_id for field in metadata.spec().fields}
    fields = [schema.find_field(field_id) for field_id in schema.field_ids if field_id not in needed]
    counted = {
        f"write.metadata.metrics.column.{schema.find_column_name(field.field_id)}": "counts"
        for field in fields
        if isinstance(field.field_type, DateType | TimestampType | TimestamptzType)
    }
    return metadata.model_copy(update={"properties": {**metadata.properties, **counted}})


def live_entries(io: FileIO, snapshot: Snapshot | None) -> list[tuple[ManifestFile, list[ManifestEntry]]]:
    """Every manifest of a snapshot with the entries of files that the table has; manifests of deletes too."""
    if snapshot is None:
        return []
    manifests = snapshot.manifests(io)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        entries = pool.map(lambda manifest: manifest.fetch_manifest_entry(io, discard_deleted=True), manifests)
        return list(zip(manifests, entries, strict=True))


def live_files(table: Table, snapshot: Snapshot | None) -> list[ManifestEntry]:
    """The data files of a snapshot, oldest first. `NotUnderstood` when files alone do not tell its rows."""
    from pyiceberg.manifest import ManifestContent

    name = ".".join(table.name())
    check_understood(table.metadata, name)
    found: list[ManifestEntry] = []
    for manifest, entries in live_entries(table.io, snapshot):
        if manifest.content == ManifestContent.DELETES and entries:
            raise ForeignDeletes(
                f"{name} has row deletes that another engine wrote; rewrite its data files there (Spark: "
                f"CALL system.rewrite_data_files), then it can be read and compacted here again"
            )
        found += entries
    return sorted(found, key=lambda entry: (entry.sequence_number or 0, entry.data_file.file_path))


def partition_texts(metadata: TableMetadata, file: DataFile) -> dict[str, str | None]:
    """Partition field → value as people read it."""
    spec = metadata.specs()[file.spec_id]
    schema = metadata.schema()
    found: dict[str, str | None] = {}
    for position, field in enumerate(spec.fields):
        value: Any = file.partition[position]
        kind = schema.find_type(field.source_id)
        found[field.name] = None if value is None else field.transform.to_human_string(kind, value)
    return found
