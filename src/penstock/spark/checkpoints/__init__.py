"""Checkpoints that outlive the driver's disk: Spark writes them here, and each batch is copied to an object store.

Spark from pip opens no object store for its checkpoints. So a query has a local one, and before a sink commits a batch
(`keep`), what is new of it goes to the store. A driver that finds its disk empty goes on from there.

    manifest.py   what a copy consists of (pure)      local.py    the directory that Spark writes
    objects.py    the store, with a put that refuses   mirror.py   beginning, sending, taking over
    keeping.py    what sinks and pipelines call

In the store:   manifests/00000000000000000042.json   one copy: whose it is, and where the bytes of each file are
                packs/00000000000000000042-1f00c3a2   bytes of files, written once, never changed

Invariants: a copy is whole or not there, for its manifest is put last; a manifest is put under a number that nobody
has put before, so of two drivers one is refused and stops, whatever it was about to commit; nothing is deleted that one
of the last copies names. May import `errors`, `naming` and `stores`.

Read `mirror.py` first.
"""
