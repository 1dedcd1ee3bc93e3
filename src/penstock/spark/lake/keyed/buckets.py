"""Which file has which keys. A bucket is one file, named after it; any other file may have any key.

The number of buckets is in the name too: when a table is to have another number, all its files are as good as foreign,
and the next merge sorts their rows into the new ones.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.spark.lake.keyed.changes import key_of_each
from penstock.spark.lake.store import TableFile

_NAME = re.compile(r"bucket-(\d{5})-of-(\d{5})-[0-9a-f]{32}-c000(?:\.\w+)?\.parquet")


def prefix_of(bucket: int, buckets: int, attempt: str) -> str:
    """What the name of a bucket's file begins with; `attempt` is hexadecimal, and no other file has it."""
    return f"bucket-{bucket:05d}-of-{buckets:05d}-{attempt}"


def bucket_of_file(path: str, buckets: int) -> int | None:
    """None for a file of another number of buckets, or of another writer."""
    found = _NAME.fullmatch(path.rpartition("/")[2])
    return int(found[1]) if found is not None and int(found[2]) == buckets else None


def bucket_of_each(rows: pa.Table | pa.RecordBatch, keys: Sequence[str], buckets: int) -> pa.Array:
    """For rows whose keys are not null; 0 for others, which are in no bucket that matters."""
    found = key_of_each(rows, keys).to_pylist()
    return pa.array([0 if key is None else zlib.crc32(key) % buckets for key in found], pa.int32())


@dataclass(frozen=True, slots=True)
class Sorted:
    """A table's files by bucket."""

    of_bucket: dict[int, tuple[TableFile, ...]] = field(default_factory=dict)
    foreign: tuple[TableFile, ...] = ()


def sort_files(files: Iterable[TableFile], buckets: int) -> Sorted:
    """Of one bucket there is one file; several, which only copying by hand makes, are merged like one."""
    found: dict[int, tuple[TableFile, ...]] = {}
    foreign: list[TableFile] = []
    for file in files:
        bucket = bucket_of_file(file.path, buckets)
        if bucket is None:
            foreign.append(file)
        else:
            found[bucket] = (*found.get(bucket, ()), file)
    return Sorted(found, tuple(foreign))
