"""Records that Kafka stores: the metadata log, internal topics, snapshots. Declared like messages.

`metadata_records.py` and `group_records.py` find the class of a record by its key.
"""
