"""One batch of a query into a lake table: what every writer of foreachBatch that fills tables does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.spark.naming import LAKE_FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BatchWriter = Callable[["DataFrame", int], None]


def write_table(
    rows: DataFrame, options: dict[str, str], checkpoint: str, batch: int, mode: str = "append", **more: str
) -> None:
    """Rows and offsets of the batch in one commit, once. `more` are options of the lake's own: `fan` names a table of
    many, which may stand before the batch; `apart`, rows that go by query and batch alone."""
    which = {"checkpointLocation": checkpoint, "batch": str(batch), **more}
    rows.write.format(LAKE_FORMAT).options(**options, **which).mode(mode).save()
