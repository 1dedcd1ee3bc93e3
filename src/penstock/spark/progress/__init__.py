"""Who is how far: what queries, tasks and pipelines tell others, and how others read it.

    topic.py      the internal topic: made on first use, appended to, read from a place or a time
    groups.py     offsets of a query as those of a group `spark-<query>`: every lag tool sees them
    reports.py    what a task found missing or undecodable, told to whoever commits its batch
    listener.py   progress of queries as Spark tells it, published to groups and to the internal topic
    records.py    what is published about a query and a pipeline, as values (pure)
    status.py     which pipelines there are, how they are, and what is wanted of them
    patience.py   how long anybody waits                     warnings_once.py   complaints, each of them once
    login.py      how a process logs in that knows an address alone

Imports `client` and this room's `offsets`, `naming`, `dialogue`; pyspark only in `listener.py`. Workers import
`reports` and `groups`, so those load nothing heavy.

Invariants: nothing here fails a query or holds one up: every wait ends within two seconds, what cannot be told is
dropped with one warning that says what to do. What is told is never what exactly-once rests on: offsets of tables and
checkpoints are elsewhere.

Keys of the internal topic: `progress/<owner>/<query>`, `pipeline/<name>`, `control/<name>`,
`span/<query id>/<batch id>/<topic>/<partition>/<start>`.

Read `topic.py` first, then `listener.py`.
"""
