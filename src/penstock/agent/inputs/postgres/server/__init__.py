"""The server itself, through psycopg: logins, what its catalog says, its slot and publication, rows and the log.

    connecting.py  logins, and errors in words        catalog.py  tables, columns, keys, the slot
    making.py      publication and slot, when absent  rows.py     the rows of a table, in the order of its key
    stream.py      the log, as it is written

psycopg is imported here and nowhere else, and only when a connection is made.
"""
