"""The asking side of Penstock: what reaches a broker, ours or anybody's, over the Kafka protocol.

    settings.py      what can be set, by Kafka's names            errors.py   what is raised
    keywords.py      the same with types, for editors and mypy    declaring.py  how a setting is declared
    security_settings.py  TLS and logins among them, and what is made of them
    config_file.py   a client.properties as Java's tools read it
    cluster_view.py  links, metadata, coordinators                topology.py what metadata adds up to
    producer/        records to brokers                           consumer/   records from brokers, alone or in a group
    admin/           everything else that a broker serves         blocking/   the same three without `await`
    compaction.py    whether a topic keeps the last value of every key, for those whose memory it is
    spans/           exact ranges of offsets, for those who plan their reads themselves

Floor 5, asyncio; imports transport and below, never server. Time comes from a `Clock` (`clock.py`), waits between
tries from `retry.py`, the words for what fails many times in a row from `outage.py`; only `arrow.py` imports pyarrow,
when the first table is asked for. `reference.py` prints settings and errors as a page, with every method from
`method_reference.py`. What is logged goes to the logger `penstock.client` and those below it.

Invariants: what users see raised is a `ClientError`, or a `TypeError` or `ValueError` for arguments that cannot be
right; what another try may mend is tried again, and every wait for a broker has an end that a setting or an argument
names; a call that is cancelled leaves nothing half done here; nothing outlives `close`: no task, no timer, no socket.

Read `cluster_view.py` first (who is there and how to reach them), then `producer/`, `consumer/` and `admin/`, each of
which says in its own contract where to begin; `blocking/` last.
"""
