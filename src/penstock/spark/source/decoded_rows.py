"""Rows of tasks: raw records, or values decoded into columns with the undecodable sent elsewhere first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa

from penstock.spark.source.arrow_rows import RecordColumns, binary_column
from penstock.spark.source.options import METADATA_COLUMNS, SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.client.spans import Piece
    from penstock.spark.values.dead_letters import DeadLetter

MERGED_BYTES: Final = 1 << 20
"""Batches smaller than that are joined: each costs Spark as much as ten thousand rows."""


class Made(NamedTuple):
    """Rows of one piece, and how many records did not become one."""

    rows: pa.RecordBatch
    dead: int


class Rows(Protocol):
    """Turns pieces into rows."""

    def of(self, piece: Piece) -> Made: ...


def rows_for(options: SourceOptions, schema: StructType) -> Rows:
    """What the options ask for, with the columns and types of `schema`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    target = to_arrow_schema(schema, timezone="UTC")
    return TypedRows(options, schema, target) if options.typed else RawRows(target)


class RawRows:
    """Records as they are."""

    def __init__(self, target: pa.Schema) -> None:
        self._columns = RecordColumns(list(target))

    def of(self, piece: Piece) -> Made:
        return Made(self._columns.batch(piece), 0)


class TypedRows:
    """The columns of decoded values, and metadata beside them. Dead letters are delivered before their rows are."""

    def __init__(self, options: SourceOptions, schema: StructType, target: pa.Schema) -> None:
        from penstock.spark.source.schemas import value_fields
        from penstock.spark.values.dead_letters import DeadLetters
        from penstock.spark.values.decoding import decoder_of
        from penstock.spark.values.options import ValueOptions

        chosen = ValueOptions.of(options.values)
        assert chosen is not None, "typed rows have a value.format"
        self._decoder = decoder_of(chosen, value_fields(schema))
        self._letters = DeadLetters.of(options.dead_letters, options.client_settings, options.letter_storage)
        self._target = target
        self._metadata = RecordColumns([field for field in target if field.name in METADATA_COLUMNS])
        self._all = RecordColumns(_letter_fields())

    def of(self, piece: Piece) -> Made:
        decoded = self._decoder.decode(binary_column(piece, "value"))
        if decoded.bad and self._letters.policy != "drop":
            self._letters.deliver(list(self._letters_of(piece, decoded.bad)))
        found = dict(zip((field.name for field in self._metadata.fields), self._metadata.columns(piece), strict=True))
        if decoded.good is not None:
            found = {name: column.take(decoded.good) for name, column in found.items()}
        for name, column in zip(decoded.columns.schema.names, decoded.columns.columns, strict=True):
            found[name] = column
        rows = pa.RecordBatch.from_arrays([found[name] for name in self._target.names], schema=self._target)
        return Made(rows, len(decoded.bad))

    def _letters_of(self, piece: Piece, bad: Iterable[tuple[int, str]]) -> Iterator[DeadLetter]:
        from penstock.spark.values.dead_letters import DeadLetter

        reasons = list(bad)
        picked = self._all.batch(piece).take(pa.array([row for row, _ in reasons], pa.int64()))
        for record, (_, error) in zip(picked.to_pylist(), reasons, strict=True):
            yield DeadLetter(
                topic=piece.span.topic,
                partition=piece.span.partition,
                offset=record["offset"],
                timestamp=_moment(record["timestamp"]),
                key=record["key"],
                value=record["value"],
                headers=[(header["key"], header["value"]) for header in record["headers"] or ()],
                error=error,
            )


def _letter_fields() -> list[Any]:
    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.int64()),
        pa.field("headers", pa.list_(pa.field("element", header))),
    ]


def _moment(micros: int) -> datetime | None:
    """None for a time that no calendar has."""
    try:
        return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)
    except (OverflowError, ValueError, OSError):
        return None


def merged(batches: Iterable[pa.RecordBatch], least_bytes: int = MERGED_BYTES) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, small batches joined until they reach `least_bytes`; empty ones left out."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        size_bytes = batch.nbytes
        if held and held_bytes + size_bytes > 2 * least_bytes:
            yield _joined(held)
            held, held_bytes = [], 0
        if batch.num_rows:
            held.append(batch)
            held_bytes += size_bytes
        if held_bytes >= least_bytes:
            yield _joined(held)
            held, held_bytes = [], 0
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
