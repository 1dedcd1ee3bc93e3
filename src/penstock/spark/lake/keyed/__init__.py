"""Tables that follow changes: one row a key, inserted, updated and deleted by what a topic says.

    settings.py    what makes a table keyed (pure)       envelopes.py  how changes come in records (pure)
    changes.py     columns of a change, and their order  reduction.py  the latest change of each key (pyarrow only)
    buckets.py     which file has which keys             graves.py     deletes that are remembered, in files' footers
    merging.py     changes into one bucket's rows

Imports `lake` beside it and no other part of the room; nothing of the lake imports it.

Invariants: a key's rows are in one file, the one of its bucket. Which change wins depends on the changes alone and not
on how batches cut them.

Read `changes.py` first, then `merging.py`.
"""
