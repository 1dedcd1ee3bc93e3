"""A live Postgres: what is in its tables, and then every change of them, in Debezium's envelope.

    log/          bytes of the replication stream become changes with their places in the log; pure
    records/      rows and changes become records: values as JSON, envelopes, keys, tombstones; pure
    position/     how far the log and the tables were read, saved or handed to transactions
    server/       the server through psycopg
    left_out.py   which tables are followed, and which would suffer
    beginning.py  publication, slot, and that nothing is missing   tables.py     rows that are there become portions
    following.py  the log becomes portions                         input.py      one after the other, and again
    settings.py, secrets.py, kind.py, telling.py, portions.py

Invariants: nothing is acknowledged to Postgres before brokers have it and the position behind it is saved; whatever is
read of a table was read after the log's beginning, so that the log, sent after it, ends at the table as it is.
"""
