"""From options and columns to a decoder: the recipe that travels, and the answer that a decoder gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from penstock.spark.values.options import ValueOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Decoded:
    """What became of some values: every row is in `columns` or in `bad`, never in both.

    `columns` holds the good rows in their order; `good` their row numbers (int64), None when all rows are good. `bad`
    has a row number and a reason each, in order of rows.
    """

    columns: pa.RecordBatch
    good: pa.Array | None
    bad: list[tuple[int, str]]


class ValueDecoder(Protocol):
    """Turns values into columns. One per task; keeps nothing between calls that changes an answer."""

    schema: pa.Schema

    def decode(self, values: pa.Array) -> Decoded:
        """`values` is an Arrow array of binary; a null in it is a tombstone."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """All it takes to build a decoder in a worker; pickles."""

    options: ValueOptions
    schema: pa.Schema

    def build(self) -> ValueDecoder:
        match self.options.format:
            case "json":
                from penstock.spark.values.json import JsonDecoder

                return JsonDecoder(self.schema, self.options)
            case "csv":
                from penstock.spark.values.csv import CsvDecoder

                return CsvDecoder(self.schema, self.options)
            case "text":
                from penstock.spark.values.text import TextDecoder

                return TextDecoder(self.schema)
            case "regex":
                from penstock.spark.values.regex import RegexDecoder

                return RegexDecoder(self.schema, self.options)
            case "avro":
                from penstock.spark.values.avro import AvroDecoder

                return AvroDecoder(self.schema, self.options)
            case "raw":
                from penstock.spark.values.text import RawDecoder

                return RawDecoder(self.schema)


def recipe_of(options: ValueOptions, schema: StructType) -> Recipe:
    """The recipe for values whose columns are `schema`; `BadOption` when the format cannot fill such columns."""
    from penstock.spark.values.schema import arrow_schema, check_columns

    check_columns(options, schema)
    return Recipe(options, arrow_schema(schema))


def decoder_of(options: ValueOptions, schema: StructType) -> ValueDecoder:
    """A decoder for values whose columns are `schema`. Send a `recipe_of` to workers, not a decoder."""
    return recipe_of(options, schema).build()


def settle(rows: int, columns: pa.RecordBatch, bad: list[tuple[int, str]]) -> Decoded:
    """The answer when `columns` holds the rows that are not bad, in order."""
    if not bad:
        return Decoded(columns, None, [])
    bad.sort()
    refused = {row for row, _ in bad}
    good = pa.array([row for row in range(rows) if row not in refused], pa.int64())
    return Decoded(columns, good, bad)


def shortened(found: Any, most: int = 60) -> str:
    """What was found, short enough for an error."""
    text = found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
    text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
