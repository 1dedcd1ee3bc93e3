"""Tables of the warehouses that the console was given: what is in them, where it came from, and who may ask them.

    warehouses.py  looks at all of them in a thread of its own, once for all viewers
    seen.py        one table as it was looked at last        spans.py   which commit brought an offset (pure)
    rights.py      what somebody has to be allowed to read, to see a table (pure)
    proving.py     the audit of one table                    sql/       questions, each in a locked-down process

Imports `spark.lake`, which loads Arrow and Delta's library when the first warehouse is looked at and not before.
Invariants: nothing of a table is told to who may not READ every topic that feeds it; a table of which that cannot be
known is told only to who could give themselves any right; the process of the console never runs anybody's SQL.
"""
