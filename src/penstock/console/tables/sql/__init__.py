"""Questions in SQL, each answered by a process of its own that has nothing but the tables which may be asked.

    asking.py   starts such a process, feeds it, watches it, ends it      order.py   what it is told and what it tells
    child.py    that process: limits first, then tables, then the question
    inside.py   which files a table may have                              cells.py   values as text (pure)

The child has an empty environment, no directory to spill to, and bounds of the system on memory, processor time, files
and what it may write. DuckDB is locked before it sees the question, reads nothing but Arrow tables that it was given,
and its answer is bounded in rows and bytes. Read `child.py` first.
"""
