"""format("penstock-lake"): tables of Delta and Iceberg whose commits carry rows and the offsets they come from.

    ranges.py      whether a batch may enter a table (pure)          options.py     what can be set (pure)
    store.py       what the lake asks of a table format              delta/ iceberg/   who answers
    offset_log.py  what a batch has read, from Spark's checkpoint    ledger.py      commits, kept for good
    sink.py        Spark's writers                                   landing.py     a batch into a table, once
    writing.py     rows out into files, in tasks: partitioning.py, parquet_files.py, statistics.py
    evolution.py   columns of a batch and of a table (pure); fitting.py takes rows into them
    places.py      paths and URIs                                    data_source.py the format's front door
    reading.py     tables as rows                                    parquet_rows.py, query.py (SQL), warehouse.py
    upkeep.py      compaction, expiry, sweeping                      audit.py       the proof that ranges tile
    judging.py     rows that break rules, left out by tasks         following/     tables as streams
    tiers.py       which small files become larger ones (pure)       beside.py      upkeep as a process: tidying.py

Imports `offsets`, `errors`, `naming`, `stores`, `checkpoints`, `progress.reports` of this room and no other part of it.
deltalake and pyiceberg are imported below `delta/` and `iceberg/` alone; what runs in tasks needs pyarrow only.

Invariants: rows and offsets are one table transaction; an offset is compared and set, so that whoever writes, a table
has every record once; `abort` deletes nothing, and nothing is deleted that a commit may have named; whatever removes
files from a table may only follow the very version it saw; the ledger follows the table, never leads.

Read `ranges.py` first, then `landing.py`.
"""
