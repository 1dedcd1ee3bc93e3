"""Iceberg tables through pyiceberg: a catalog in SQLite beside them, or any that pyiceberg reaches. Extra [iceberg].

    catalogs.py    which catalog, which name, which directory      schemas.py     Arrow and Iceberg, partition fields
    store.py       `IcebergStore`: what the lake asks of a format  data_files.py  Parquet files as entries of manifests
    snapshots.py   a table's history as commits                    replacing.py   files for other files, in one snapshot
    compaction.py  small files into large ones                     expiry.py      old snapshots, and files nobody names
    features.py    which tables are understood
    transactions.py  pyiceberg's, without a copy of all metadata for every look at it

Invariants: offsets are table properties that change in the transaction that adds the rows, and every batch makes a
snapshot, even one without rows. A commit names the snapshot it is built on, and the catalog refuses it when that is no
longer the newest (`commit.retry.num-retries=0` keeps pyiceberg from trying again behind our back): so of two drivers
with the same offsets one lands. A data file is deleted only when no snapshot in the table's metadata names it.

Version, as the lake counts it, is the sequence number of the snapshot. May import `lake` and pyiceberg, nothing of
Spark. Read `store.py` first.
"""
