"""Stores of files that are no disk of this machine: what is set of them, and how each library is told.

    settings.py   names, and what of them goes together (pure)     secrets.py    env:NAME and file:PATH
    storage.py    the settings of a table's files, resolved        catalogs.py   those of its catalog
    s3.py gcs.py azure.py   one kind of store each: its names, as pyarrow, deltalake and pyiceberg call them

Imports `errors` of the spark room and libraries that everybody here has; pyarrow when a file system is made.

Invariants: options, properties of tables, feeds and files of pipelines hold references to secrets, never secrets; what
is resolved shows itself to nobody (`repr`), and goes to workers inside of what is pickled for them.

Read `settings.py` first.
"""
