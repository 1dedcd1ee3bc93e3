"""The log on disk, in Kafka's own files: segments, indexes, checkpoints, producer state. Floor 2, synchronous.

Duty: keep batches of bytes under rising offsets, give them back whole, and survive a stop at any instant. All access to
the disk goes through the Files port; time comes in as an argument; nothing here knows a loop, a socket or a thread.
May import `model`, `kernels` and `protocol`.

Invariants: what lies below `flushed` survives a power cut; offsets never change and never come back; a read returns
whole batches and never looks into them; index files may lag behind their log and are never wrong; nothing below the
recovery point is scanned at start; a disk that fails takes its own directory offline and no other; a name that a log
can be made under is in no offset checkpoint.

Nothing syncs on the caller's thread except `Log.flush`, `Log.close` and of `LogStore` `settle`, `remove` and `close`:
what must reach the disk is handed out by `Log.files_to_sync` and `LogStore.checkpoint`, so that one sync off the loop
serves everybody who waits.

Read `log.py` first, then `segment.py` and `reading.py`; `unsynced.py` for what the disk is owed, and in which order it
is paid; `recovery.py` and `beliefs.py` for what happens after a crash; `store.py` for the directories of a node,
`departures.py` for how a log leaves them. File formats are each in a module of their own: `offset_index`, `time_index`,
`transaction_index`, `producer_snapshot`, `checkpoints`, `partition_metadata`, `meta_properties`, `clean_shutdown`.
"""
