"""Delta tables through deltalake. Only `penstock.spark.lake.opening.open_store` imports this.

    store.py        what the lake asks of a table, answered        log.py   offsets and history, read from the Delta log
    features.py     which tables are understood
    compaction.py   few files instead of many small ones           thinning.py   a log that stays short
    history.py      what of it is kept aside for streams

What was found by running deltalake 1.6.6, and shaped this: two compactions at once, or an overwrite beside one, both
land and double rows (its conflict check passes over files removed without data change), so everything that removes
files is a strict compare-and-set on the version here (no retries); a handle does not see its own commits; asking for
one transaction's version takes 0.4 ms, so they are read from the log, once, and followed; a commit lists the log's
directory several times (1.2 s at 10,000 files), so the log is kept short and not listed where a look at one name does.
"""
