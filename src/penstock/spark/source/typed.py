"""Typed rows on the driver: which columns values have, by option, by the user's schema or by a sample."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.spark.errors import BadOption
from penstock.spark.source.options import METADATA_COLUMNS
from penstock.spark.stores.storage import Storage
from penstock.spark.values.options import ValueOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.spark.source.options import SourceOptions

_log = logging.getLogger("penstock.spark.source")


def value_schema(options: SourceOptions) -> StructType:
    """The columns of the values, where the user gave no schema of Spark's; a sample is read when they are inferred."""
    from penstock.spark.values.schema import columns_of

    chosen = _chosen(options)
    found = _inferred(options, chosen) if chosen.inferred else columns_of(chosen)
    for name in found.names:
        if name in METADATA_COLUMNS:
            raise BadOption(
                f"values have a column {name}, which is the name of a metadata column here: leave it out of "
                "value.schema, or read the values as text and parse them in a later step"
            )
    return found


def _inferred(options: SourceOptions, chosen: ValueOptions) -> StructType:
    from penstock.spark.source.sampling import sample_values
    from penstock.spark.values.infer import infer_schema

    found, report = infer_schema(chosen, sample_values(options, chosen.sample))
    # What was guessed is for people to see, whatever the level of their log.
    _log.warning("columns inferred for %s: %s", options.topics, report)
    return found


def with_columns(options: SourceOptions, columns: StructType) -> SourceOptions:
    """The options for values with exactly these columns, whoever chose them: nothing is left to infer in a worker."""
    from penstock.spark.values.ddl import ddl_of
    from penstock.spark.values.dead_letters import DeadLetters
    from penstock.spark.values.decoding import recipe_of

    letters = DeadLetters.of(options.dead_letters)
    storage = Storage.of(options.storage) if letters.policy == "table" else options.letter_storage
    values = dict(options.values)
    said = values.get("value.schema", "").strip()
    inferred = said.lower() == "infer"
    if values["value.format"].strip().lower() not in ("text", "raw"):
        values["value.schema"] = ddl_of(columns)
        if inferred:
            values.pop("value.schema.sample", None)
    settled = replace(options, values=values, letter_storage=storage)
    if said and not inferred:
        _check_same(options, columns)
    recipe_of(_chosen(settled), columns)
    return settled


def _check_same(options: SourceOptions, columns: StructType) -> None:
    from penstock.spark.values.schema import columns_of

    wanted = columns_of(_chosen(options))
    if wanted.simpleString() != columns.simpleString():
        raise BadOption(
            f"value.schema says {wanted.simpleString()} and .schema() says {columns.simpleString()}: give one of them"
        )


def _chosen(options: SourceOptions) -> ValueOptions:
    chosen = ValueOptions.of(options.values)
    assert chosen is not None, "typed rows have a value.format"
    return chosen
