"""spark.read.format("penstock-lake"): a version of a table as rows, read from its files by Python workers.

Workers import pyarrow alone: which files there are, and what their partitions are, comes with the task.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.store import TableFile
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

GROUP_BYTES: Final = 64 << 20
"""What one task reads, about, where there is much to read."""
GROUP_BYTES_LEAST: Final = 4 << 20
"""Less is not worth a task of its own."""


def spark_schema(options: LakeOptions) -> StructType:
    """The table's columns as Spark's; an older version has the present columns too, empty where it had none."""
    from pyspark.sql.pandas.types import from_arrow_schema

    store = open_store(options)
    store.refresh()
    return from_arrow_schema(store.schema())


def files_of(options: LakeOptions) -> list[TableFile]:
    """The files of the version that `options` name, the newest if none."""
    return _files_and_storage(options)[0]


def _files_and_storage(options: LakeOptions) -> tuple[list[TableFile], Storage]:
    store = open_store(options)
    store.refresh()
    return store.files(options.version), store.storage


@dataclass
class FileGroup(InputPartition):
    """What one task reads."""

    files: tuple[TableFile, ...]
    storage: Storage = FROM_ENVIRONMENT


def group(files: Sequence[TableFile], cores: int) -> list[tuple[TableFile, ...]]:
    """Files for tasks of about the same size: as many as there are cores, or as the bytes need. Pure."""
    total = sum(file.size_bytes for file in files)
    wanted = max(-(-total // GROUP_BYTES), min(cores, -(-total // GROUP_BYTES_LEAST)), 1)
    groups: list[list[TableFile]] = [[] for _ in range(min(wanted, len(files)))]
    weights = [0] * len(groups)
    for file in sorted(files, key=lambda each: each.size_bytes, reverse=True):
        lightest = weights.index(min(weights))
        groups[lightest].append(file)
        weights[lightest] += file.size_bytes
    return [tuple(sorted(each, key=lambda file: file.path)) for each in groups]


class LakeReader(DataSourceReader):
    """Made on the driver, pickled to the tasks."""

    def __init__(self, options: LakeOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        files, storage = _files_and_storage(self.options)
        return [FileGroup(each, storage) for each in group(files, os.cpu_count() or 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        from penstock.spark.lake.parquet_rows import rows_of

        assert isinstance(partition, FileGroup)
        schema = to_arrow_schema(self.schema, timezone="UTC")
        for file in partition.files:
            yield from rows_of(file.path, schema, file.partition, partition.storage)
