"""Tables that follow changes: one row a key, inserted, updated and deleted by what a topic says, exactly once.

    settings.py    what makes a table keyed (pure)       declared.py   the keys of a pipeline file that say it (pure)
    envelopes.py   how changes come in records (pure)    shape.py      how rows become changes, as SQL (pure)
    changes.py     columns of a change, and their order  reduction.py  the latest change of each key (pyarrow only)
    buckets.py     which file has which keys             graves.py     deletes that are remembered, in files' footers
    merging.py     changes into one bucket's rows        bucket_task.py   the same with files, in a task
    spreading.py   changes on their way to those tasks   watching.py   whether offsets still are an order (pure)
    landing.py     a batch of changes into a table, once  shaping.py   Spark makes changes of rows
    writer.py      for foreachBatch: the way in          rewriting.py  Spark lets tasks rewrite buckets

Imports `lake` beside it and no other part of the room; nothing of the lake imports it.

Invariants: rows and offsets are one table transaction on top of the very version that was read: a conflict merges anew,
files that were made for one version never enter another. A key's rows are in one file, the one of its bucket; what
other engines wrote is sorted into buckets by the next merge. Which change wins depends on the changes alone and not on
how batches cut them.

Read `changes.py` first, then `merging.py`.
"""
