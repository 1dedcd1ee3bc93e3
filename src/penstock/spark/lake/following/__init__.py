"""A table as a stream: its rows once, then what each new version brings.

    versions.py     what versions brought, and what of it a stream takes (pure)
    delta.py        the same from a Delta log            iceberg.py    from Iceberg's snapshots
    differences.py  rows of a version that took rows away, against those before (DuckDB, in tasks)
    stores.py       whichever format it is               parts.py, rows.py   what a task reads, and gives
    stream.py       what Spark asks

Imports `lake` beside it; nothing of the lake but its data source imports it.

Invariants: an offset is a version, so a sink's compare-and-set on offsets covers tables as it covers topics; a batch
that is played again reads the same versions; a version that is no longer there is an error, never passed over.

Read `versions.py` first, then `stream.py`.
"""
