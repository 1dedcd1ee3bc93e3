"""format("penstock") to write: rows to topics, batch and streaming.

    options.py     what can be set, and which columns can be sent (pure)
    records.py     Arrow batches as records by topic
    delivery.py    how rows reach topics and when they count: at least once
    transactions/  exactly once: tasks write transactions, the driver decides and ends them
    writers.py     what Spark calls

Imports `client` through `dialogue`; pyspark in `writers.py` alone, pyarrow only in workers.

Invariants: when `write` returns, every row of the task is acknowledged by brokers as `acks` promises, or it has raised;
nothing is under way while Spark prepares the next rows, so no record waits for a process that does not run; every wait
ends, at the latest with the producer's delivery timeout. A batch that Spark plays again is written again, and with
`exactly.once` shown once.

Read `delivery.py` first, then `transactions/machine.py`.
"""
