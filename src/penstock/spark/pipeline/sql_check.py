"""Whether the SQL of steps is SQL, and names columns that are there: asked of Spark's own analyzer, and of nobody else.

Sources become empty rows with the columns that the file says. No broker is asked, no table opened, nothing of the
user's Python is run and no command carried out. Where columns cannot be known that way (a schema to infer, a step in
Python, a table of a catalog) the SQL behind them is parsed and believed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from penstock.declared.fields import Notes
from penstock.declared.mistakes import Mistake, did_you_mean
from penstock.declared.positions import Positions
from penstock.spark.pipeline.deep_check import place_in_step
from penstock.spark.pipeline.flow import Flow, Sink, Source, Step
from penstock.spark.pipeline.option_check import check_partitions
from penstock.spark.pipeline.rule_check import check_rules
from penstock.spark.pipeline.wiring import source_options
from penstock.spark.reasons import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_SETTINGS = re.compile(r"spark\.sql\.(?!streaming\.|extensions|catalog|warehouse).*")
_NOT_OURS = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_ROUTINE", "UNRESOLVABLE_TABLE_VALUED_FUNCTION")
"""Tables of catalogs, and functions that Python or jars may bring, are there when it runs or they are not."""


def has_sql(flow: Flow) -> bool:
    """Whether there is any: a step's, or a rule on rows."""
    parts: tuple[Source | Step | Sink, ...] = (*flow.sources, *flow.steps, *flow.sinks)
    return any(step.sql is not None for step in flow.steps) or any(part.expect for part in parts)


def open_small_session(flow: Flow) -> SparkSession:
    """A session that analyzes and runs nothing: one core, quick to start, with the file's settings of SQL."""
    from penstock.spark.sessions import session

    settings = {name: value for name, value in flow.spark.settings.items() if _SETTINGS.fullmatch(name)}
    quick = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.log.level": "OFF",
        "spark.driver.memory": "512m",
    }
    name = f"penstock-validate-{flow.name}"
    return session("local[1]", app_name=name, settings={**quick, **settings}, formats=False)


def sql_check(flow: Flow, spark: SparkSession) -> list[Mistake]:
    """Every mistake once, where it is in the file."""
    notes = Notes(Positions(flow.path.read_text(encoding="utf-8")))
    known: dict[str, DataFrame] = {}
    for source in flow.sources:
        _give(spark, known, source.name, _source_rows(spark, flow, source, notes))
        check_rules(spark, source.expect, known.get(source.name), f"source {source.name}", notes)
    for step in flow.steps:
        _give(spark, known, step.name, _step_rows(spark, flow, step, known, notes))
        check_rules(spark, step.expect, known.get(step.name), f"step {step.name}", notes)
    for sink in flow.sinks:
        check_rules(spark, sink.expect, known.get(sink.reads), f"sink {sink.name}", notes)
        if sink.reads in known:
            _check_sink(sink, known[sink.reads].columns, notes)
    return sorted(set(notes.mistakes))


def _give(spark: SparkSession, known: dict[str, DataFrame], name: str, rows: DataFrame | None) -> None:
    """Rows under their name; a session that had others under it has them no longer."""
    spark.catalog.dropTempView(name)
    if rows is not None:
        rows.createOrReplaceTempView(name)
        known[name] = rows


def _source_rows(spark: SparkSession, flow: Flow, source: Source, notes: Notes) -> DataFrame | None:
    columns = _source_columns(flow, source)
    if columns is None:
        return None
    rows = spark.createDataFrame([], columns)
    if source.watermark is None:
        return rows
    try:
        return rows.withWatermark(source.watermark.column, source.watermark.delay)
    except Exception as failure:  # Spark's
        notes.wrong(("sources", source.name, "watermark"), f"source {source.name}: {reason_of(failure).words}")
        return rows


def _source_columns(flow: Flow, source: Source) -> StructType | None:
    """None where only the topic itself could tell."""
    from penstock.spark.source.data_source import TopicDataSource
    from penstock.spark.values.options import ValueOptions

    if source.table is not None:
        return None
    options = source_options(flow, source)
    chosen = ValueOptions.of(options)
    if chosen is not None and chosen.inferred:
        return None
    columns = TopicDataSource(options).schema()
    assert not isinstance(columns, str), "the source answers with columns"
    return columns


def _step_rows(
    spark: SparkSession, flow: Flow, step: Step, known: dict[str, DataFrame], notes: Notes
) -> DataFrame | None:
    if step.sql is None:
        return None
    state: Any = spark._jsparkSession.sessionState()
    try:
        parsed = state.sqlParser().parsePlan(step.sql)
        if not all(name in known for name in step.inputs):
            return None
        modes = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode  # type: ignore[union-attr]
        planned = state.executePlan(parsed, modes.SKIP())
        planned.assertAnalyzed()
        return spark.createDataFrame([], _columns(planned.analyzed().schema().json()))
    except Exception as failure:  # Spark's
        if not _is_known_elsewhere(failure):
            place = place_in_step(flow, step, failure, notes)
            notes.wrong_at(place, f"step {step.name}: {reason_of(failure).words}")
        return None


def _columns(schema: str) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(schema))


def _is_known_elsewhere(failure: Any) -> bool:
    condition = getattr(failure, "getCondition", lambda: "")()
    return str(condition or "").startswith(_NOT_OURS)


def _check_sink(sink: Sink, columns: list[str], notes: Notes) -> None:
    check_partitions(sink, columns, notes)
    if sink.key is not None and sink.key not in columns:
        words = f"key = {sink.key!r} is no column of {sink.reads}{did_you_mean(sink.key, columns)}"
        notes.wrong(("sinks", sink.name, "key"), words)
