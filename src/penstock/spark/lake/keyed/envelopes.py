"""How records tell of changes: which columns their values have, by the name of the envelope. Pure.

debezium        {"before": {…}, "after": {…}, "op": "u", "source": {"lsn": 7, …}, "ts_ms": 0}, or that as `payload`
debezium-flat   the row itself, with __op, __deleted, __lsn beside it (Debezium's ExtractNewRecordState)
upsert          the row itself; a null value deletes the row that the record's key names
"""

from __future__ import annotations

import base64
from typing import Final

DEBEZIUM: Final = "debezium"
FLAT: Final = "debezium-flat"
BY_KEY: Final = "upsert"
ENVELOPES: Final = (DEBEZIUM, FLAT, BY_KEY)

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""Debezium writes it where a large value did not change and so is not in the database's log."""
UNAVAILABLE_BYTES: Final = base64.b64encode(UNAVAILABLE.encode())
"""The same where a column has bytes, which JSON has as base64."""

SOURCE: Final = "source"
SOURCE_COLUMNS: Final = {
    "lsn": "BIGINT",
    "pos": "BIGINT",
    "file": "STRING",
    "scn": "STRING",
    "commit_lsn": "STRING",
    "change_lsn": "STRING",
    "ts_ms": "BIGINT",
    "ts_us": "BIGINT",
    "ts_ns": "BIGINT",
    "db": "STRING",
    "schema": "STRING",
    "table": "STRING",
}
"""Of a Debezium record's `source`, whatever the database: what orders changes, and what says where they are from."""

FLAT_COLUMNS: Final = {
    "__op": "STRING",
    "__deleted": "STRING",
    "__lsn": "BIGINT",
    "__source_lsn": "BIGINT",
    "__source_ts_ms": "BIGINT",
    "__ts_ms": "BIGINT",
}


def value_schema(envelope: str, row: str, names: tuple[str, ...]) -> str:
    """The DDL of values in that envelope, of rows with the columns `row`, whose names are `names`."""
    if envelope == DEBEZIUM:
        source = ", ".join(f"`{name}`: {kind}" for name, kind in SOURCE_COLUMNS.items())
        event = f"before STRUCT<{row}>, after STRUCT<{row}>, op STRING, ts_ms BIGINT, source STRUCT<{source}>"
        return f"{event}, payload STRUCT<{event}>"
    if envelope == FLAT:
        given = {name.lower() for name in names}
        extra = [f"{name} {kind}" for name, kind in FLAT_COLUMNS.items() if name not in given]
        return ", ".join([row, *extra])
    return row
