"""Sinks of many tables, and sinks that share a query: what a file may say of them. Pure.

Sinks that say `together = "WORD"` are one Spark query with one checkpoint: the source is read and decoded once, and
each batch is handed to one sink after the other. So they read one source, and steps between keep no state.
"""

from __future__ import annotations

from penstock.declared.fields import Notes, Table
from penstock.spark.pipeline.flow import Flow, Sink, SinkKind
from penstock.spark.pipeline.table_pattern import complaint_of


def check_shape(table: Table, sink: Sink) -> None:
    """What can be told of one sink by itself."""
    if sink.kind is SinkKind.TABLE and (words := complaint_of(sink.target)):
        table.wrong("table", words)
    many = sink.many is not None
    if "max_tables" in table and not many:
        table.wrong(
            "max_tables", f'max_tables is for a table of many, table = "orders_{{country}}": {table.title} is none'
        )
    if many and sink.mode != "append":
        table.wrong("mode", f'mode = "{sink.mode}" cannot be for many tables: rows are only added to them')
    if many and sink.rows == "record":
        table.wrong("rows", 'rows = "record" is a promise of one table: here a record goes to one of many')
    if sink.keyed is not None and many:
        table.wrong("keys", "a table of many has rows added to it: changes by key go into one table, without braces")
    if sink.keyed is not None and sink.dead_letters is not None:
        table.wrong(
            "dead_letters", "a table with keys keeps no letters: rules of its source or of a step leave rows out"
        )
    if sink.together is None:
        return
    if sink.kind is SinkKind.PARQUET:
        table.wrong("together", "a directory of Parquet files knows its batches only by a query of its own")
    if sink.mode != "append":
        table.wrong("together", f'sinks that share a query have mode = "append", and this one has "{sink.mode}"')


def check_sharing(flow: Flow, notes: Notes) -> None:
    """What must hold between sinks."""
    first: dict[str, Sink] = {}
    names = {sink.name.lower() for sink in flow.sinks}
    for sink in flow.sinks:
        if sink.together is not None:
            path = ("sinks", sink.name, "together")
            if sink.together.lower() in names:
                notes.wrong(path, f"together = {sink.together!r} is the name of a sink: their checkpoints would be one")
            _check_mate(flow, first.setdefault(sink.together, sink), sink, notes)
    _check_tables(flow, notes)


def _check_mate(flow: Flow, first: Sink, sink: Sink, notes: Notes) -> None:
    path = ("sinks", sink.name)
    sources = sorted({source.name for source in flow.lineage(sink)[0]})
    others = sorted({source.name for source in flow.lineage(first)[0]})
    if len(sources) != 1:
        words = f"sink {sink.name} reads {' and '.join(sources)}: sinks that stand together share one source"
        notes.wrong((*path, "together"), words)
    elif sources != others:
        words = f"sinks {first.name} and {sink.name} stand together, but read {others[0]} and {sources[0]}"
        notes.wrong((*path, "together"), f"{words}: sinks share a query over one source")
    if sink.trigger != first.trigger:
        words = f"sinks {first.name} and {sink.name} stand together, and a query has one trigger: {first.trigger!r}"
        notes.wrong((*path, "trigger"), f"{words}, not {sink.trigger!r} too")
    if sink.exactly_once and any(each.exactly_once for each in flow.mates(sink) if each.name < sink.name):
        words = "one topic of a query is written in transactions: give the other sink a query of its own"
        notes.wrong((*path, "exactly_once"), words)


def _check_tables(flow: Flow, notes: Notes) -> None:
    """Tables that a value may name are no other sink's."""
    for sink in flow.sinks:
        pattern = sink.many
        if pattern is None:
            continue
        for other in flow.sinks:
            if (
                other.kind is SinkKind.TABLE
                and other is not sink
                and (pattern.may_name(other.target) or (other.name > sink.name and other.target == sink.target))
            ):
                words = f"sink {sink.name} makes tables {sink.target}, and sink {other.name} writes {other.target}"
                notes.wrong(("sinks", other.name, "table"), f"{words}: give one of them another name")
