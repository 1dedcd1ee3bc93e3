"""What one task of a followed table reads."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from penstock.spark.lake.store import TableFile
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage


@dataclass
class VersionPart(InputPartition):
    """What one task reads: rows that came with a version, or files that it took away and those in their place."""

    version: int
    files: tuple[TableFile, ...]
    removed: tuple[TableFile, ...] = ()
    keys: tuple[str, ...] = ()
    storage: Storage = FROM_ENVIRONMENT
