"""A live Postgres: what is in its tables, and then every change of them, in Debezium's envelope.

    log/        bytes of the replication stream become changes with their places in the log; pure
    records/    rows and changes become records: values as JSON, envelopes, keys, tombstones; pure

Invariants: nothing is acknowledged to Postgres before brokers have it and the position behind it is saved; whatever is
read of a table was read after the log's beginning, so that the log, sent after it, ends at the table as it is.
"""
