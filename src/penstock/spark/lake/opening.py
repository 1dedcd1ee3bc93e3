"""Which store a table has. The formats know `store.py`, so whoever knows both sits above them."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from penstock.spark.errors import Missing
from penstock.spark.lake.options import NEEDS_PYICEBERG

if TYPE_CHECKING:
    from penstock.spark.lake.options import LakeOptions
    from penstock.spark.lake.store import TableStore


def open_store(options: LakeOptions) -> TableStore:
    """The table that `options` name, which need not exist yet. Format libraries are loaded here and not before."""
    if options.table_format == "iceberg":
        if importlib.util.find_spec("pyiceberg") is None:
            raise Missing(NEEDS_PYICEBERG)
        from penstock.spark.lake.iceberg.store import IcebergStore

        return IcebergStore(options)
    from penstock.spark.lake.delta.store import DeltaStore

    return DeltaStore(options)
