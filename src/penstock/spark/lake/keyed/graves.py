"""Deletes that are remembered, so that an older change that comes later does not bring the row back.

They are in the footer of their bucket's file: one transaction with the rows, and no table or file of their own that
could be forgotten. Whoever rewrites the file without knowing them loses them, and with them only what they are for.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.errors import SparkRoomError
from penstock.spark.lake.keyed.changes import DELETE, KIND, SEEN, ChangeColumns

FOOTER_KEY: Final = b"penstock.deletes"
DIED: Final = "_died_ms"
"""When the delete was merged: its age decides how long it is remembered."""

GRAVES_MOST: Final = 500_000
"""In one bucket: they are read whole, and are part of a footer that every reader of the file reads."""


class TooManyDeletes(SparkRoomError):
    """More deletes are to be remembered than a bucket can; says what to set."""


def schema_of(columns: ChangeColumns) -> pa.Schema:
    return pa.schema([columns.rows.field(name) for name in (*columns.keys, *columns.places)] + [(DIED, pa.int64())])


def encode(graves: pa.Table) -> dict[str, str]:
    """What goes into the footer; nothing for none."""
    if graves.num_rows == 0:
        return {}
    if graves.num_rows > GRAVES_MOST:
        raise TooManyDeletes(
            f"{graves.num_rows} deletes would be remembered in one bucket, and {GRAVES_MOST} can be: raise buckets, or "
            "let keep_deletes be shorter"
        )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, graves.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(graves)
    return {FOOTER_KEY.decode(): base64.b64encode(sink.getvalue().to_pybytes()).decode()}


def decode(footer: Mapping[bytes, bytes] | None, columns: ChangeColumns) -> pa.Table:
    wanted = schema_of(columns)
    found = (footer or {}).get(FOOTER_KEY)
    if found is None:
        return wanted.empty_table()
    with pa.ipc.open_stream(base64.b64decode(found)) as stream:
        graves = stream.read_all()
    if not set(wanted.names) <= set(graves.column_names):
        # The table's keys or its sequence are not what they were: what was remembered says nothing any more.
        return wanted.empty_table()
    return graves.select(wanted.names).cast(wanted)


def young(graves: pa.Table, since_ms: int) -> pa.Table:
    """Those that died after `since_ms`."""
    return graves.filter(pc.greater(graves.column(DIED), since_ms))


def as_changes(graves: pa.Table, columns: ChangeColumns) -> pa.Table:
    """As deletes, which count for nothing."""
    made = []
    for field in columns.schema:
        if field.name in graves.column_names:
            made.append(graves.column(field.name))
        else:
            value = {KIND: DELETE, SEEN: 0}.get(field.name)
            made.append(pa.chunked_array([pa.repeat(pa.scalar(value, field.type), graves.num_rows)]))
    return pa.Table.from_arrays(made, schema=columns.schema)
