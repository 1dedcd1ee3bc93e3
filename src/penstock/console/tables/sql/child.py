"""The process that answers one question, and ends. Started by `asking.py`; reads an order, writes an answer.

What the system forbids it comes before the question is looked at: no file may be written, memory and processor time
have an end, and an alarm kills it whether or not whoever started it still lives.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.console.tables.sql.order import SqlOrder, SqlTold

ADDRESS_SPACE_TIMES = 2
"""What the engine may use, and as much again for the answer. What libraries have mapped before comes on top."""
FILES_MAX = 512
GRACE_S = 5
NICENESS = 10
"""Whoever answers browsers goes before whoever computes."""


def confine(memory_bytes: int, seconds: int) -> None:
    """For good: limits that only sink. Libraries are there already: they map more addresses than they ever use."""
    mapped = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    for limit, most in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, FILES_MAX),
        (resource.RLIMIT_CPU, seconds + GRACE_S),
        (resource.RLIMIT_AS, mapped + memory_bytes * ADDRESS_SPACE_TIMES),
    ):
        _, hard = resource.getrlimit(limit)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds + GRACE_S)
    os.nice(NICENESS)


def load(order: SqlOrder) -> None:
    """All libraries that the tables of an order need, so that each is mapped before memory is counted."""
    import duckdb
    import pyarrow as pa
    import pyarrow.dataset

    from penstock.console.tables.sql import cells, inside
    from penstock.spark.lake import parquet_rows

    _ = duckdb, pyarrow.dataset, cells, inside, parquet_rows
    formats = {table.format for table in order.tables}
    if "delta" in formats:
        from penstock.spark.lake.delta import store as delta_store

        _ = delta_store
    if "iceberg" in formats:
        from penstock.spark.lake.iceberg import store as iceberg_store

        _ = iceberg_store
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def main() -> int:
    given = sys.stdin.buffer.read()
    import msgspec

    from penstock.console.tables.sql.order import SqlOrder

    order = msgspec.json.decode(given, type=SqlOrder)
    load(order)
    confine(order.memory_bytes, order.seconds)
    told = answered(order)
    sys.stdout.buffer.write(msgspec.json.encode(told))
    sys.stdout.buffer.flush()
    # Arrow and DuckDB have threads that need not be waited for.
    os._exit(0)


def answered(order: SqlOrder) -> SqlTold:
    """Refusals are answers too; whatever else fails is told by its kind, without paths of this machine."""
    from penstock.console.tables.sql.inside import check_inside
    from penstock.console.tables.sql.order import SqlTold, table_of
    from penstock.model.errors import PenstockError
    from penstock.spark.lake.query import Bounds, ask_tables

    homes = {each.name: each.warehouse for each in order.tables}
    try:
        found = ask_tables(
            [table_of(each) for each in order.tables],
            order.sql,
            limit=order.rows,
            bounds=Bounds(order.memory_bytes),
            reads=("SELECT",),
            check=lambda table, store: check_inside(table.name, store, homes[table.name]),
        )
        return told_rows(found.rows, order.bytes, more=found.more)
    except MemoryError:
        return SqlTold(refused=f"it needs more than {order.memory_bytes >> 20} MB of memory")
    except PenstockError as refused:
        return SqlTold(refused=str(refused))
    except Exception as failure:  # whatever it is, the person is told and the process ends
        return SqlTold(refused=f"{type(failure).__name__}: {failure}")


def told_rows(rows: pa.Table, bytes_max: int, *, more: bool) -> SqlTold:
    """As many rows as there is room for."""
    import msgspec

    from penstock.console.tables.sql.cells import texts_of
    from penstock.console.tables.sql.order import SqlTold

    told = SqlTold([{"name": field.name, "type": str(field.type)} for field in rows.schema], cut=more)
    room = bytes_max
    for batch in rows.to_batches(max_chunksize=256):
        columns = [texts_of(column) for column in _chunked(batch)]
        for cells in zip(*columns, strict=True):
            room -= len(msgspec.json.encode(cells)) + 1
            if room < 0:
                told.cut = True
                return told
            told.rows.append(list(cells))
    return told


def _chunked(batch: pa.RecordBatch) -> list[pa.ChunkedArray]:
    import pyarrow as pa

    return [pa.chunked_array([column]) for column in batch.columns]


if __name__ == "__main__":
    sys.exit(main())
