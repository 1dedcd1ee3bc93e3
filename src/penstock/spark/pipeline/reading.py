"""A pipeline file becomes a Flow, or a list of everything that is wrong with it."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from penstock.declared.fields import Notes, Table
from penstock.declared.mistakes import Mistake, did_you_mean, not_toml, text_of
from penstock.declared.positions import Positions
from penstock.spark.lake.keyed.declared import ONLY_KEYED, cdc_of, keyed_of
from penstock.spark.lake.keyed.settings import KEYED_TRIGGER
from penstock.spark.pipeline.admin_port import admin_of
from penstock.spark.pipeline.expectations import expectations_of
from penstock.spark.pipeline.flow import (
    AVAILABLE_NOW,
    CONTINUOUS,
    EARLIEST,
    LATEST,
    TABLE_TRIGGER,
    Flow,
    Reference,
    Sink,
    SinkKind,
    Source,
    SparkPart,
    Step,
    Watermark,
)
from penstock.spark.pipeline.mirroring import check_checkpoints, checkpoints_here
from penstock.spark.pipeline.mistakes import FlowBroken
from penstock.spark.pipeline.objectives import fresh_within_of
from penstock.spark.pipeline.option_check import check_options
from penstock.spark.pipeline.references import reference_of
from penstock.spark.pipeline.sharing import check_shape, check_sharing
from penstock.spark.pipeline.sql_names import names_read
from penstock.spark.pipeline.store_settings import catalog_of, storage_of
from penstock.spark.pipeline.table_pattern import TABLES_MAX, TABLES_MOST
from penstock.spark.pipeline.table_sources import check_circles, check_source_keys, removals_of, table_start
from penstock.spark.pipeline.validation import check, check_names, order_of

FORMATS: Final = ("json", "csv", "text", "regex", "avro", "raw")
TABLE_FORMATS: Final = ("delta", "iceberg")
MODES: Final = ("append", "update", "complete")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNIT = r"(?:millisecond|second|minute|hour|day|week|month|year)s?"
_INTERVAL = re.compile(rf"\s*\d+\s+{_UNIT}(?:\s+\d+\s+{_UNIT})*\s*", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")


@dataclass(frozen=True, slots=True)
class Examined:
    """What reading found. `flow` is there when there are no mistakes."""

    flow: Flow | None
    mistakes: tuple[Mistake, ...]
    warnings: tuple[Mistake, ...]


def read_flow(path: Path) -> Flow:
    """The flow in a file; raises `FlowBroken` with all that is wrong. A file that cannot be opened is an OSError."""
    found = examine(text_of(path.read_bytes(), str(path)), path)
    if found.flow is None:
        raise FlowBroken(str(path), found.mistakes)
    return found.flow


def examine(text: str, path: Path) -> Examined:
    """Everything that can be told without Spark. `path` is where relative paths begin; it is not read."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as broken:
        return Examined(None, (not_toml(str(broken), text),), ())
    notes = Notes(Positions(text))
    flow = _flow(Table(values, (), notes, "the file"), path.absolute(), hashlib.sha256(text.encode()).hexdigest()[:16])
    if not notes.mistakes:
        check(flow, notes)
        check_sharing(flow, notes)
        check_circles(flow, notes)
        check_checkpoints(flow, notes)
    if not notes.mistakes:
        check_options(flow, notes)
    mistakes = tuple(sorted(set(notes.mistakes)))
    return Examined(None if mistakes else flow, mistakes, tuple(sorted(notes.warnings)))


def _flow(file: Table, path: Path, digest: str) -> Flow:
    name = file.required_text("name", "it names the pipeline, its groups and its checkpoints")
    if name and not _NAME.fullmatch(name):
        file.wrong("name", f"name = {name!r} has more than letters, digits, - and _ in it")
    warehouse = _place(file.text("warehouse") or "lake", path.parent)
    checkpoints = file.text("checkpoints")
    sources = tuple(_source(table, name) for name, table in file.named_tables("sources"))
    references = tuple(_reference(table, name) for name, table in file.named_tables("references"))
    steps = [_step(table) for table in file.table_list("steps")]
    sinks = tuple(_sink(table, name) for name, table in file.named_tables("sinks"))
    for key, found, example in (("sources", sources, "[sources.orders]"), ("sinks", sinks, "[sinks.lake]")):
        if not found and not file.values.get(key):
            file.wrong(None, f"there are no {key}: write one under {example}")
    spark = _spark(file.table("spark"), path.parent)
    checkpoints = _place(checkpoints, path.parent) if checkpoints else f"{warehouse}/_checkpoints/{name}"
    flow = Flow(
        name=name,
        path=path,
        digest=digest,
        bootstrap=file.text("bootstrap"),
        warehouse=warehouse,
        checkpoints=checkpoints,
        spark=spark,
        kafka=file.options("kafka"),
        sources=sources,
        steps=_linked(steps, [source.name for source in sources], [each.name for each in references], file.notes),
        sinks=sinks,
        references=references,
        storage=storage_of(file, path.parent),
        catalog=catalog_of(file, path.parent),
        admin=admin_of(file),
        checkpoints_here=checkpoints_here(name, checkpoints, spark),
    )
    file.finish()
    _check_reads(flow, file.notes)
    return flow


def _place(given: str, directory: Path) -> str:
    """Relative paths begin where the file is, so that it does not matter where one stands; URIs stay."""
    return given.rstrip("/") if "://" in given else os.path.normpath(directory / Path(given).expanduser())


def _spark(table: Table | None, directory: Path) -> SparkPart:
    if table is None:
        return SparkPart()
    part = SparkPart(
        master=table.text("master") or SparkPart().master,
        settings=table.options("settings"),
        python=tuple(Path(_place(each, directory)) for each in table.texts("python")),
    )
    for index, file in enumerate(part.python):
        if not file.exists():
            table.notes.wrong((*table.path, "python", index), f"there is no file {file}")
    table.finish()
    return part


def _source(table: Table, name: str) -> Source:
    _check_view_name(table, name)
    topic, topics, pattern = table.text("topic"), table.texts("topics"), table.text("pattern")
    given = [key for key in ("topic", "topics", "pattern", "table") if key in table]
    check_source_keys(table)
    if len(given) != 1:
        what = "has none of topic, topics, pattern and table" if not given else f"has {' and '.join(given)}"
        table.wrong(given[1] if given else None, f"{table.title} {what}: exactly one says what to read")
    source = Source(
        name=name,
        topics=(topic,) if topic else topics,
        pattern=pattern,
        format=table.choice("format", FORMATS, "") or None,
        schema=table.text("schema"),
        start=table_start(table) if "table" in table else _start(table),
        dead_letters=_dead_letters(table),
        watermark=_watermark(table.table("watermark")),
        options=table.options("options"),
        line=table.line,
        cdc=cdc_of(table),
        table=table.text("table"),
        table_format=table.choice("table_format", TABLE_FORMATS, "delta"),
        removals=removals_of(table),
        changes=table.flag("changes"),
    )
    source = replace(source, expect=expectations_of(table, letters=source.keeps_letters and not source.cdc))
    if source.format in (None, "raw") and source.schema is not None:
        table.wrong("schema", f"{table.title} has a schema but no format: raw records have the columns of Kafka's")
    if source.format in ("json", "csv") and source.schema is None and "schema" not in table:
        table.wrong("format", f'{table.title} needs a schema: columns such as "id BIGINT, at TIMESTAMP", or "infer"')
    table.finish()
    return source


def _start(table: Table) -> str:
    start = table.moment("start") or LATEST
    plain = start in (EARLIEST, LATEST) or start.startswith(("table:", "{"))
    if not plain and not _is_time(start):
        ways = "earliest, latest, a time such as 2026-11-01T00:00:00Z, table:PATH or offsets as JSON"
        table.wrong("start", f"start = {start!r} is none of {ways}{_near_word(start)}")
    return start


def _near_word(start: str) -> str:
    hint = did_you_mean(start, (EARLIEST, LATEST))
    return hint if "mean" in hint else ""


def _is_time(text: str) -> bool:
    from datetime import datetime

    if not _ISO.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _dead_letters(table: Table) -> str | None:
    given = table.text("dead_letters")
    if given is not None and given not in ("fail", "drop"):
        kind, _, where = given.partition(":")
        if kind not in ("topic", "table") or not where:
            table.wrong("dead_letters", f"dead_letters = {given!r} is none of fail, drop, topic:NAME and table:PATH")
    return given


def _row_letters(table: Table) -> str | None:
    given = table.text("dead_letters")
    if given is not None and not (given.startswith("table:") and given != "table:"):
        table.wrong("dead_letters", f"dead_letters = {given!r} is not table:PATH: rows of a table are kept in a table")
    return given


def _watermark(table: Table | None) -> Watermark | None:
    if table is None:
        return None
    column = table.required_text("column", "the time of a row")
    delay = table.required_text("delay", 'how late a row may come, such as "10 minutes"')
    if delay and not _INTERVAL.fullmatch(delay):
        table.wrong("delay", f'delay = {delay!r} is no interval such as "10 minutes" or "1 hour 30 minutes"')
    table.finish()
    return Watermark(column, delay) if column and delay else None


def _step(table: Table) -> Step:
    name = table.required_text("name", "what others read it by")
    if name:
        table.title = f"step {name}"
        _check_view_name(table, name)
    sql, python, inputs = table.text("sql"), table.text("python"), table.text_or_texts("from")
    if ("sql" in table) == ("python" in table):
        table.wrong(
            None, f"{table.title} has {'both' if 'sql' in table else 'neither'} sql and python: give one of them"
        )
    elif python is not None:
        _check_reference(table, "python", python)
        if not inputs and "from" not in table:
            table.wrong(None, f"{table.title} has no from: the names of what its function is given")
    elif "from" in table:
        table.wrong("from", f"{table.title} has sql and from: the SQL itself names what it reads")
    expect = expectations_of(table, letters=False)
    table.finish()
    return Step(name, inputs, sql, python, table.line, expect)


def _sink(table: Table, name: str) -> Sink:
    if not _NAME.fullmatch(name):
        table.wrong(None, f"the name of sink {name!r} has more than letters, digits, - and _ in it")
    reads = table.required_text("from", "the source or step whose rows it takes")
    targets = {
        SinkKind.TABLE: table.text("table"),
        SinkKind.TOPIC: table.text("topic"),
        SinkKind.PARQUET: table.text("parquet"),
        SinkKind.FOREACH_BATCH: table.text("foreach_batch"),
        SinkKind.CONSOLE: "console" if table.flag("console") else None,
    }
    given = [kind for kind in SinkKind if kind.value in table]
    if len(given) != 1:
        ways = "table, topic, parquet, console and foreach_batch"
        what = f"has none of {ways}" if not given else f"has {' and '.join(given)}"
        table.wrong(given[1].value if given else None, f"{table.title} {what}: exactly one says where rows go")
    kind = given[0] if given else SinkKind.CONSOLE
    if kind is SinkKind.CONSOLE and given and table.values["console"] is False:
        table.wrong("console", "console = false goes nowhere: leave the sink out")
    target = targets[kind] or ""
    if kind is SinkKind.FOREACH_BATCH and target:
        _check_reference(table, "foreach_batch", target)
    sink = Sink(
        name=name,
        reads=reads,
        kind=kind,
        target="" if kind is SinkKind.CONSOLE else target,
        trigger=_trigger(table, kind),
        mode=table.choice("mode", MODES, "append"),
        table_format=table.choice("table_format", TABLE_FORMATS, "delta"),
        partition_by=table.texts("partition_by"),
        rows=table.choice("rows", ("record", "any"), "") or None,
        key=table.text("key"),
        exactly_once=table.flag("exactly_once"),
        options=table.options("options"),
        line=table.line,
        expect=expectations_of(
            table,
            letters="dead_letters" in table and "{" not in target and "keys" not in table,
            counts=kind is SinkKind.TABLE and "{" not in target and "keys" not in table,
        ),
        dead_letters=_row_letters(table),
        max_tables=table.integer("max_tables", TABLES_MAX, 1, TABLES_MOST),
        together=table.text("together"),
        keyed=keyed_of(table),
        fresh_within_s=fresh_within_of(table),
    )
    check_shape(table, sink)
    _check_fits(table, sink)
    table.finish()
    return sink


_ONLY_FOR: Final = {
    "table_format": (SinkKind.TABLE,),
    "rows": (SinkKind.TABLE,),
    "dead_letters": (SinkKind.TABLE,),
    "partition_by": (SinkKind.TABLE, SinkKind.PARQUET),
    "key": (SinkKind.TOPIC,),
    "exactly_once": (SinkKind.TOPIC,),
    **dict.fromkeys(("keys", *ONLY_KEYED), (SinkKind.TABLE,)),
}


def _check_fits(table: Table, sink: Sink) -> None:
    for key, kinds in _ONLY_FOR.items():
        if key in table and sink.kind not in kinds:
            table.wrong(key, f"{key} is for {' and '.join(kinds)} sinks, and {table.title} is {sink.kind}")
    if sink.mode == "update" and sink.kind in (SinkKind.TABLE, SinkKind.PARQUET):
        table.wrong(
            "mode", f'mode = "update" cannot be for a {sink.kind}: rows are only added ("append") or all replaced'
        )
    if sink.mode == "complete" and sink.kind is SinkKind.PARQUET:
        table.wrong("mode", 'mode = "complete" cannot be for parquet: Spark only adds files')


def _trigger(table: Table, kind: SinkKind) -> str:
    given = table.text("trigger")
    if given is None:
        if "keys" in table:
            return KEYED_TRIGGER
        return TABLE_TRIGGER if kind in (SinkKind.TABLE, SinkKind.PARQUET) else CONTINUOUS
    if given not in (CONTINUOUS, AVAILABLE_NOW) and not _INTERVAL.fullmatch(given):
        hint = did_you_mean(given, (CONTINUOUS, AVAILABLE_NOW))
        words = f'trigger = {given!r} is no interval such as "10 seconds", nor continuous or available-now'
        table.wrong("trigger", words + (hint if "mean" in hint else ""))
    return given


def _check_view_name(table: Table, name: str) -> None:
    if not _VIEW.fullmatch(name):
        table.wrong(None, f"{name!r} is no name for SQL: letters, digits and _, and no digit first")


def _check_reference(table: Table, key: str, given: str) -> None:
    module, colon, function = given.partition(":")
    if not colon or not function.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        table.wrong(key, f"{key} = {given!r} is not module:function")


def _reference(table: Table, name: str) -> Reference:
    _check_view_name(table, name)
    return reference_of(table, name)


def _linked(steps: list[Step], sources: list[str], references: list[str], notes: Notes) -> tuple[Step, ...]:
    """Steps with what their SQL reads, in an order in which they can be made; circles are noted."""
    check_names(sources, steps, notes, references)
    known: dict[str, str] = {}
    for name in (*sources, *references, *(step.name for step in steps if step.name)):
        known.setdefault(name.lower(), name)
    linked = []
    for index, step in enumerate(steps):
        path = ("steps", index)
        reads = [(read.name, (*path, "sql"), read.at) for read in names_read(step.sql or "")]
        reads += [(name, (*path, "from"), -1) for name in step.inputs]
        for name, where, at in reads:
            if name.lower() not in known:
                sql = at >= 0 and step.sql is not None
                place = notes.positions.inside(where, step.sql or "", at) if sql else notes.positions.of(where)
                words = f"step {step.name} reads {name!r}, which is no source, reference or step"
                notes.wrong_at(place, words + did_you_mean(name, known.values()))
        inputs = tuple(known[name.lower()] for name, _, _ in reads if name.lower() in known)
        linked.append(replace(step, inputs=inputs))
    return order_of(linked, notes)


def _check_reads(flow: Flow, notes: Notes) -> None:
    known = list(flow.names())
    for sink in flow.sinks:
        if sink.reads and sink.reads not in known:
            words = f"sink {sink.name} reads {sink.reads!r}, which is neither a source nor a step"
            notes.wrong(("sinks", sink.name, "from"), words + did_you_mean(sink.reads, known))
