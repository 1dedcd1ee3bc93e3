"""A table and the end of its log, read as one: `penstock.spark.table(spark, topic)`.

    fed_tables.py   which table a topic feeds
    snapshot.py     one version of a table as a DataFrame
    tail.py         where the log goes on after a table (pure)
    tail_source.py  spans of the log as a DataFrame
    together.py     `table`: the two, cut exactly
    keyed_tail.py   the tail of a table by key, as changes of it

Imports `lake`, `source` and `feed` of its room. `feed.py`, beside this package, is what a table says of its source.

Invariants: the table is pinned first, its offsets are those of the same version, and the ends of the log are looked up
after that: every record is there once, whoever commits, compacts or produces meanwhile. The tail is read by topic id.
Nothing is written: dead letters of the tail are left to the query that feeds the table.

Read `together.py` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.spark.union.together import table

__all__ = ["table"]


def __getattr__(name: str) -> Any:
    # What reads tables is loaded when one is asked for.
    if name != "table":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from penstock.spark.union import together

    return together.table
