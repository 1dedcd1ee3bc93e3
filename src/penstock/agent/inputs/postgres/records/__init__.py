"""Rows as records: `values.py` makes JSON of what Postgres writes, `envelope.py` Debezium's events and keys. Pure."""
