"""A small warehouse: a Delta table and an Iceberg table that topics were written to, as the sink leaves them."""

from __future__ import annotations

from pathlib import Path

from penstock.spark.lake.landing import write_down
from penstock.spark.lake.store import TableStore
from tests.unit.spark.lake.tables import append, made

BATCHES = 3


def make_lake(directory: Path) -> Path:
    """`orders` (Delta) and `visits` (Iceberg), each of three batches of five records."""
    for name, table_format in (("orders", "delta"), ("visits", "iceberg")):
        fill(made(directory / name, table_format))
    return directory


def fill(store: TableStore, batches: int = BATCHES) -> None:
    for batch in range(batches):
        store.refresh()
        write_down(store, append(store, batch * 5, batch * 5 + 5, batch=batch))
