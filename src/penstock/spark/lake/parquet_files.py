"""Parquet files that grow by row groups and roll at a size. pyarrow only.

A file that could not be finished is removed at once: nobody has been told of it. Nothing else is ever removed here.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from penstock.spark.errors import SparkRoomError
from penstock.spark.lake.partitioning import directory_of
from penstock.spark.lake.places import opened
from penstock.spark.lake.statistics import COLUMNS_MAX, delta_statistics
from penstock.spark.lake.store import WrittenFile
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

if TYPE_CHECKING:
    from collections.abc import Iterator

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STREAM_BUFFER_BYTES: Final = 1 << 18


class DiskFull(SparkRoomError):
    """A file could not be written for want of space; says where, and how much is left."""


def full(path: str, why: str) -> DiskFull:
    """`path` is a file, or was to be one."""
    left = ""
    with contextlib.suppress(OSError):
        left = f"; {shutil.disk_usage(path.rpartition('/')[0]).free >> 20} MiB are left there"
    return DiskFull(
        f"no space to write {path} ({why}){left}. Nothing was committed: make room or raise the quota and start the "
        "query again, it goes on where the table stands"
    )


@dataclass(frozen=True, slots=True)
class FileShape:
    """How the files of one task look."""

    directory: str
    """Absolute, local or a URI."""
    prefix: str
    """Beginning of the files' names; no other attempt of any task has it."""
    compression: str
    target_bytes: int
    storage: Storage = FROM_ENVIRONMENT


class GrowingFile:
    """One Parquet file of one partition while it is written."""

    def __init__(self, shape: FileShape, number: int, schema: pa.Schema, partition: Mapping[str, str | None]) -> None:
        self._files, root = opened(shape.directory, shape.storage)
        self._schema = schema
        self._partition = dict(partition)
        self._with_nan: set[str] = set()
        self._footer: list[Any] = []
        codec = "" if shape.compression == "none" else f".{shape.compression}"
        inner = directory_of(partition)
        name = f"{shape.prefix}-c{number:03d}{codec}.parquet"
        self.relative = f"{inner}/{name}" if inner else name
        self.path = f"{root}/{self.relative}"
        with self._or_removed():
            self._files.create_dir(f"{root}/{inner}" if inner else root, recursive=True)
            self._stream = self._files.open_output_stream(self.path, buffer_size=_STREAM_BUFFER_BYTES)
            self._writer = pq.ParquetWriter(
                self._stream,
                schema,
                compression=shape.compression,
                metadata_collector=self._footer,
                store_schema=False,
            )

    def write(self, rows: pa.Table) -> int:
        """Adds a row group; how many bytes the file has now."""
        for field in list(self._schema)[:COLUMNS_MAX]:
            if types.is_floating(field.type) and pc.any(pc.is_nan(rows.column(field.name))).as_py():
                self._with_nan.add(field.name)
        with self._or_removed():
            self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
            return int(self._stream.tell())

    def note(self, notes: Mapping[str, str]) -> None:
        """Keeps texts in the file's footer, under their names."""
        if notes:
            self._writer.add_key_value_metadata(dict(notes))

    def finish(self) -> WrittenFile:
        with self._or_removed():
            self._writer.close()
            size = int(self._stream.tell())
            self._stream.close()
        footer = self._footer[0]
        return WrittenFile(
            path=self.relative,
            size_bytes=size,
            rows=footer.num_rows,
            partition=self._partition,
            stats=delta_statistics(self._schema, footer, self._with_nan),
        )

    def drop(self) -> None:
        """Removes what was written: the task failed before anybody was told."""
        for close in ("_writer", "_stream"):
            if hasattr(self, close):
                with contextlib.suppress(Exception):
                    getattr(self, close).close()
        with contextlib.suppress(OSError):
            self._files.delete_file(self.path)

    @contextlib.contextmanager
    def _or_removed(self) -> Iterator[None]:
        try:
            yield
        except OSError as failure:
            self.drop()
            if failure.errno in _FULL:
                raise full(self.path, failure.strerror or str(failure)) from failure
            raise
        except BaseException:
            self.drop()
            raise
