"""From options and columns to a decoder: the recipe that travels to workers, and which decoder it makes there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.spark.values.decoded import Decoded, ValueDecoder
from penstock.spark.values.options import ValueOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["Decoded", "Recipe", "ValueDecoder", "decoder_of", "recipe_of"]


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
