"""Topics as Spark streams and tables: sources, sinks, lake tables and declared pipelines. Floor 6, extra [spark].

    sessions.py    a Spark session with the settings that were measured to be right     naming.py   names others see
    offsets.py     what Spark's offset log holds for us                                 errors.py   what is raised
    source/        format("penstock"): topics as rows, batch and streaming              topic_sink/ rows to topics
    values/        values as columns: json, csv, text, regex, avro; dead letters
    redrive/       dead letters back to their topics, each once
    lake/          format("penstock-lake"): Delta and Iceberg, rows and offsets in one commit; audit, upkeep, SQL
    stores/        how object stores and catalogs are reached    checkpoints/  copies of checkpoints in object stores
    progress/      who is how far: groups for lag tools, the internal topic
    union/         a table and the end of its log, as one        feed.py       what feeds a table
    asking.py      SQL over tables, answered by Spark            dialogue.py   brokers, spoken to without await
    recount.py     what topics hold where an audit lacks an explanation
    pipeline/      flows declared in a file: checked, run, watched, stopped

Brokers are reached through `client` alone. pyspark is imported here and nowhere else; nothing here is imported by a
broker. What plans (options, limits, packing, comparing offsets) is pure and tested without Spark.

Invariants: a batch that Spark plays again reads the same offsets; a table's ranges `[from, to)` tile with no gap and no
overlap, whoever writes; nothing that may have been committed is ever deleted by whoever failed to learn of it; every
wait has an end.

Read `offsets.py` first, then `source/stream.py`, `lake/sink.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.spark.registration import register
    from penstock.spark.sessions import session
    from penstock.spark.union import table

__all__ = ["register", "session", "table"]

_HOMES = {
    "register": "penstock.spark.registration",
    "session": "penstock.spark.sessions",
    "table": "penstock.spark.union",
}


def __getattr__(name: str) -> Any:
    # Workers import this package for every task: what they do not need is not loaded.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)
