"""format("penstock"): topics as rows, batch and streaming, as Spark's Kafka connector gives them, and typed rows.

    options.py   what can be set (client_settings.py has kafka.*)                     topics.py   which partitions
    starts.py    where to begin and end: words, offsets, times, tables                 losses.py   what is gone
    limits.py    how much a trigger takes                                              packing.py  spans into tasks
    facts.py     what the cluster is asked (sampling.py reads a few values)            tables.py   where a table stands
    schemas.py   the columns of rows; typed.py: of values                              tasks.py    what executors get
    batch.py stream.py data_source.py   what Spark calls, on the driver
    reading.py decoded_rows.py arrow_rows.py    what Spark calls, in executors

Options, starts, topics, limits, packing and losses are pure: facts come in as mappings. May import `client`, and of
this room `offsets`, `errors`, `dialogue`, `values`, `progress`; the lake only to ask where a table stands
and to say how tables are reached.

Invariants: the same (start, end) gives the same ranges, whenever it is planned; every offset of a batch is in exactly
one task; what is skipped was either absent or told (failOnDataLoss); every wait for a broker ends.

Read `stream.py` first, then `losses.py` and `limits.py`.
"""
