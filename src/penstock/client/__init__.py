"""The asking side of Penstock: what reaches a broker, ours or anybody's, over the Kafka protocol.

    settings.py      what can be set, by Kafka's names            errors.py   what is raised
    cluster_view.py  links, metadata, coordinators                topology.py what metadata adds up to
    producer/        records to brokers                           consumer/   records from brokers
    admin/           everything else that a broker serves         blocking/   the same three without `await`

Floor 5, asyncio; imports transport and below, never server. Time comes from a `Clock` (`clock.py`), waits between
tries from `retry.py`; only `arrow.py` knows pyarrow. What is logged goes to the logger `penstock.client`.

Read `cluster_view.py` first (who is there and how to reach them), then `producer/`.
"""
