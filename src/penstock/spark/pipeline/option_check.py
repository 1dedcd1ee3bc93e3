"""Options that sources and tables will be given, checked by those who serve them. Needs no session and no broker."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Final

from penstock.declared.fields import Notes
from penstock.declared.mistakes import did_you_mean
from penstock.spark.errors import BadOption
from penstock.spark.pipeline.flow import Flow, Sink, SinkKind, Source
from penstock.spark.pipeline.table_sources import table_source_options
from penstock.spark.pipeline.wiring import lake_options, source_options, topic_options

_KEYS: Final = {
    "value.schema": "schema",
    "the schema": "schema",
    "value.format": "format",
    "deadletters": "dead_letters",
    "starting": "start",
    "subscribepattern": "pattern",
    "exactly.once": "exactly_once",
}
"""Which key of the file an option that a message begins with was made of."""


def check_options(flow: Flow, notes: Notes) -> None:
    for source in flow.sources:
        columns = _check_source(flow, source, notes)
        for sink in flow.sinks:
            if sink.reads == source.name and columns:
                check_partitions(sink, columns, notes)
    for sink in flow.sinks:
        if sink.kind is SinkKind.TABLE:
            _check_table(flow, sink, notes)
        elif sink.kind is SinkKind.TOPIC:
            _check_topic(flow, sink, notes)


def _check_source(flow: Flow, source: Source, notes: Notes) -> list[str]:
    """The columns of its rows, as far as they are known before anything is read."""
    from penstock.spark.source.options import SourceOptions

    if source.table is not None:
        return _check_table_source(flow, source, notes)
    try:
        options = SourceOptions.of(source_options(flow, source), streaming=True)
        columns = _typed_columns(source_options(flow, source)) if options.typed else list(options.columns)
    except BadOption as wrong:
        _wrong(("sources", source.name), str(wrong), set(source.options), notes)
        return []
    if columns and options.typed:
        columns += options.metadata_columns
    mark = source.watermark
    if columns and mark is not None and mark.column.lower() not in {column.lower() for column in columns}:
        words = f"the watermark's column {mark.column!r} is none of {source.name}'s{did_you_mean(mark.column, columns)}"
        notes.wrong(("sources", source.name, "watermark", "column"), words)
    return columns


def _check_table_source(flow: Flow, source: Source, notes: Notes) -> list[str]:
    """Its columns are the table's, which only whoever opens it knows."""
    from penstock.spark.lake.options import LakeOptions

    try:
        LakeOptions.of(table_source_options(flow, source))
    except BadOption as wrong:
        _wrong(("sources", source.name), str(wrong), set(source.options), notes)
    return []


def _typed_columns(options: dict[str, str]) -> list[str]:
    from penstock.spark.values.ddl_grammar import names_in
    from penstock.spark.values.options import ValueOptions

    chosen = ValueOptions.of(options)
    assert chosen is not None, "the source is typed"
    if importlib.util.find_spec("pyspark") is None:
        # What can be told without Spark is told; whoever goes on with the file will miss it.
        return names_in(chosen.schema) if chosen.schema is not None and not chosen.inferred else []
    from penstock.spark.values.schema import columns_of

    return [] if chosen.inferred else list(columns_of(chosen).names)


def check_partitions(sink: Sink, columns: list[str], notes: Notes) -> None:
    """Whether the columns that a sink is split by, or names tables by, are among those that it is given."""
    known = {column.lower() for column in columns}
    if sink.many is not None and sink.many.field.lower() not in known:
        words = f"table = {sink.target!r}: {sink.reads} has no column {sink.many.field!r}"
        notes.wrong(("sinks", sink.name, "table"), words + did_you_mean(sink.many.field, columns))
    for index, given in enumerate(sink.partition_by):
        # Iceberg partitions by day(at) and the like.
        column = given.partition("(")[2].rstrip(")") if "(" in given else given
        if column.lower() not in known:
            words = f"partition_by: {sink.reads} has no column {column!r}{did_you_mean(column, columns)}"
            notes.wrong(("sinks", sink.name, "partition_by", index), words)


def _check_table(flow: Flow, sink: Sink, notes: Notes) -> None:
    from penstock.spark.lake.options import NEEDS_PYICEBERG, LakeOptions

    try:
        options = LakeOptions.of(lake_options(flow, sink))
    except BadOption as wrong:
        _wrong(("sinks", sink.name), str(wrong), set(sink.options), notes)
        return
    if options.table_format == "iceberg" and importlib.util.find_spec("pyiceberg") is None:
        notes.wrong(("sinks", sink.name, "table_format"), NEEDS_PYICEBERG)


def _check_topic(flow: Flow, sink: Sink, notes: Notes) -> None:
    from penstock.spark.topic_sink.options import SinkOptions

    try:
        # What the file says for all clients may be for sources alone; here it is the sink's own words.
        SinkOptions.of(topic_options(replace(flow, kafka={}), sink))
    except BadOption as wrong:
        _wrong(("sinks", sink.name), str(wrong), set(sink.options), notes)


def _wrong(path: tuple[str, ...], words: str, given: set[str], notes: Notes) -> None:
    """At the key that the message speaks of: an option by its own name, or what it was made of."""
    small = words.lower()
    if words.startswith("kafka."):
        notes.wrong(("kafka", words.removeprefix("kafka.").split(":")[0].split(" ")[0]), words)
        return
    for name in given:
        if name.lower() in small:
            notes.wrong((*path, "options", name), words)
            return
    key = next((key for option, key in _KEYS.items() if option in small), None)
    notes.wrong(path if key is None else (*path, key), words)
