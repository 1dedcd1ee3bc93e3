"""`[sources.NAME] table = "…"`: a table of the lake as a source. Pure.

start = "earliest"      all rows that are there, then what new versions bring; "latest", or a version as a number
removals = "fail"       what a version that takes rows away does; "ignore" passes it over
changes = true          what became of each row instead, in `_change` and `_version`
"""

from __future__ import annotations

from typing import Final

from penstock.declared.fields import Notes, Table
from penstock.declared.mistakes import did_you_mean
from penstock.spark.lake.following.versions import FAIL, REMOVALS
from penstock.spark.pipeline.flow import EARLIEST, LATEST, Flow, Sink, SinkKind, Source
from penstock.spark.pipeline.store_settings import catalog_uri, source_settings

_OF_TOPICS: Final = {
    "format": "its columns are the table's",
    "schema": "its columns are the table's",
    "cdc": "changes = true says what became of each row",
    "dead_letters": "its rows were decoded when they were written",
}
_OF_TABLES: Final = ("table_format", "removals", "changes")


def check_source_keys(table: Table) -> None:
    """Keys that have no meaning beside the one that says what is read."""
    if "table" in table:
        for key, why in _OF_TOPICS.items():
            if key in table:
                table.wrong(key, f"{key} is for topics, and {table.title} reads a table: {why}")
    else:
        for key in _OF_TABLES:
            if key in table:
                table.wrong(key, f"{key} is for sources that read a table, and {table.title} reads topics")
    if table.flag("changes") and "removals" in table:
        table.wrong("removals", "removals is for rows alone: changes = true tells of rows that go")


def removals_of(table: Table) -> str:
    return table.choice("removals", REMOVALS, FAIL)


def table_start(table: Table) -> str:
    """Where a table is begun: versions where topics have offsets."""
    value = table.value("start")
    if value is None:
        return EARLIEST
    text = str(value)
    if isinstance(value, bool) or not (text in (EARLIEST, LATEST) or text.isdigit()):
        hint = did_you_mean(text, (EARLIEST, LATEST))
        words = f"start = {value!r} is none of earliest (all rows, then changes), latest and a version such as 12"
        table.wrong("start", words + (hint if "mean" in hint else ""))
    return text


def table_source_options(flow: Flow, source: Source, *, start: str | None = None) -> dict[str, str]:
    """Options of format("penstock-lake") for a stream; `start` replaces what the file says."""
    assert source.table is not None, "the source reads a table"
    made = {
        "path": flow.place_of(source.table),
        "table.format": source.table_format,
        "startingVersion": start or source.start,
        "removals": source.removals,
        "changes": str(source.changes).lower(),
        **source_settings(flow, iceberg=source.table_format == "iceberg"),
        **catalog_uri(flow, source.table_format),
    }
    given = {name.lower() for name in source.options}
    return {**{name: value for name, value in made.items() if name.lower() not in given}, **source.options}


def check_circles(flow: Flow, notes: Notes) -> None:
    """A table that is made of itself would grow for ever."""
    for sink in flow.sinks:
        if sink.kind is not SinkKind.TABLE:
            continue
        for source in flow.lineage(sink)[0]:
            if source.table is not None and _is_fed(flow, sink, source):
                words = f"sink {sink.name} writes the table that source {source.name} reads: give it another one"
                notes.wrong(("sinks", sink.name, "table"), words)


def _is_fed(flow: Flow, sink: Sink, source: Source) -> bool:
    assert source.table is not None, "the source reads a table"
    if sink.many is not None:
        return sink.many.may_name(source.table)
    return flow.place_of(source.table) == flow.table_path(sink)
