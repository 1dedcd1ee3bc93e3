"""Whether a rule is SQL that is true or false of a row: asked of Spark's analyzer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.declared.fields import Notes
from penstock.spark.pipeline.expectations import Expectation
from penstock.spark.reasons import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check_rules(
    spark: SparkSession, expectations: Sequence[Expectation], rows: DataFrame | None, who: str, notes: Notes
) -> None:
    """Where the columns are not known, a rule that can be read is believed."""
    from pyspark.sql import functions as f

    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    for each in expectations:
        try:
            if rows is None:
                parser.parseExpression(each.rule)
            else:
                rows.where(f.expr(each.rule))
        except Exception as failure:  # Spark's
            words = f"{who}: the expectation {each.name} cannot be asked of its rows: {reason_of(failure).words}"
            notes.wrong(each.path, words)
