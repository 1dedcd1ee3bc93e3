"""Expectations at work on Spark's rows.

The rules of a place become one column of bits (`judging.BROKEN`): a rule that a row breaks sets its bit, one that is to
fail raises. How many rows broke which rule is observed and told with the batch's progress. Where the rows go into a
table the bits go along, and the table's writer counts and leaves out in the very commit; everywhere else a filter does.
What a source drops is a dead letter of the source, sent by the task that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from penstock.spark.lake.judging import BROKEN, words_of
from penstock.spark.pipeline.expectations import Expectation, Otherwise
from penstock.spark.pipeline.rule_letters import HIDDEN
from penstock.spark.progress.records import EXPECTED

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

IDENTITY: Final = ("_topic", "_partition", "_offset", "_timestamp", "_key")
"""Metadata columns that a dead letter is made of."""


def with_bits(rows: DataFrame, place: str, expectations: Sequence[Expectation], *, first: int = 0) -> DataFrame:
    """Rows with the bits of these rules from bit `first` on, beside those that are there already; counted."""
    from pyspark.sql import functions as f

    # A rule that fails is looked at, and not only where somebody reads its bit: counting reads all of them.
    bits = [_bit(place, each, at) for at, each in enumerate(expectations, first)]
    there = [f.col(BROKEN)] if BROKEN in rows.columns else []
    whole = f.lit(0).cast("bigint")
    for bit in (*there, *bits):
        whole = whole.bitwiseOR(bit)
    counts = [
        f.count_if(f.col(BROKEN).bitwiseAND(f.lit(1 << at).cast("bigint")) != 0).alias(each.name)
        for at, each in enumerate(expectations, first)
    ]
    return rows.withColumn(BROKEN, whole).observe(f"{EXPECTED}{place}", f.count(f.lit(1)).alias("rows"), *counts)


def _bit(place: str, expectation: Expectation, at: int) -> Column:
    from pyspark.sql import functions as f

    holds = f.expr(expectation.rule)
    bit = f.lit(1 << at).cast("bigint")
    if expectation.otherwise is Otherwise.FAIL:
        told = f"{words_of(expectation.name, expectation.rule)} ({place}). Nothing of the batch was written. The row: "
        row = f.substring(f.to_json(f.struct("*")), 1, 200)
        bit = f.raise_error(f.concat(f.lit(told), row)).cast("bigint")
    return f.when(holds, f.lit(0).cast("bigint")).otherwise(bit)


def kept(rows: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """Rows without those that are left out, and without the bits. The rules have bits 0 and on."""
    from pyspark.sql import functions as f

    mask = sum(1 << at for at, each in enumerate(expectations) if leaves_out(each))
    staying = rows.where(f.col(BROKEN).bitwiseAND(f.lit(mask).cast("bigint")) == 0) if mask else rows
    return staying.drop(BROKEN)


def leaves_out(expectation: Expectation) -> bool:
    return expectation.otherwise in (Otherwise.DROP, Otherwise.DEAD)


def with_identity(load: Callable[[dict[str, str]], DataFrame], options: dict[str, str]) -> DataFrame:
    """The rows of a source with what a dead letter says of its record, in columns that only `delivering` looks at."""
    from pyspark.sql import functions as f

    asked = next((name for name in options if name.lower() == "metadatacolumns"), "metadataColumns")
    own = [name.strip() for name in options.get(asked, "").split(",") if name.strip()]
    rows = load({**options, asked: ",".join(dict.fromkeys((*own, *IDENTITY)))})
    hidden = {f"{HIDDEN}{name}": f.col(name) for name in IDENTITY}
    return rows.withColumns(hidden).drop(*(name for name in IDENTITY if name not in own))


def delivering(rows: DataFrame, expectations: Sequence[Expectation], options: dict[str, str]) -> DataFrame:
    """Rows that break a rule whose rows are dead go to the source's dead letters, before the others go on; `options`
    are the source's. Rows that came without their identity are another query's to send."""
    if not any(name.startswith(HIDDEN) for name in rows.columns):
        return rows
    from penstock.spark.source.options import SourceOptions

    source = SourceOptions.of(options, streaming=True)
    letters, settings = source.dead_letters, source.client_settings
    dead = [(at, words_of(each.name, each.rule)) for at, each in enumerate(expectations) if _is_dead(each)]
    staying = [name for name in rows.columns if not name.startswith(HIDDEN)]

    def deliver(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from penstock.spark.pipeline.rule_letters import deliver_broken

        for batch in batches:
            deliver_broken(batch, dead, letters, settings)
            yield batch.select(staying)

    return rows.mapInArrow(deliver, rows.select(*staying).schema)


def _is_dead(expectation: Expectation) -> bool:
    return expectation.otherwise is Otherwise.DEAD
