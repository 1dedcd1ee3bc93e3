"""A first pipeline file, with a comment for everything a beginner may want to change. Pure but for the sampling."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.errors import Missing

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.spark.values.inference_report import InferenceReport

SAMPLE_RECORDS: Final = 1_000
JSON_SHARE: Final = 0.9
"""So many of the sampled values must be JSON objects for a topic to be called JSON."""


_SPLITS: Final = ("DATE", "STRING", "BOOLEAN")
"""Types of columns to split a table by, best first. A time has too many values, and a folder each."""
_AS_TIMES: Final = ("looks like TIMESTAMP", "looks like DATE")


@dataclass(frozen=True, slots=True)
class Looked:
    """What a sample of a topic says. `report` is for people."""

    format: str | None
    schema: str | None
    columns: tuple[str, ...]
    times: tuple[str, ...]
    """Columns that a watermark could be on."""
    report: str
    partition: str | None = None
    """A column that a table could be split by: one that may well have few values."""


NOT_LOOKED: Final = Looked(
    "json",
    "id BIGINT, country STRING, amount DOUBLE, at TIMESTAMP",
    ("id", "country", "amount", "at"),
    ("at",),
    "",
    "country",
)


def look(topic: str, options: dict[str, str]) -> Looked:
    """Samples a topic: JSON objects become columns, other texts lines, everything else stays raw records."""
    from penstock.spark.source.options import SourceOptions
    from penstock.spark.source.sampling import sample_values
    from penstock.spark.values.infer import infer_schema
    from penstock.spark.values.options import ValueOptions

    given = SourceOptions.of({**options, "subscribe": topic, "startingOffsets": "earliest"}, streaming=False)
    try:
        sample = sample_values(given, SAMPLE_RECORDS)
    except Missing as empty:
        if "no records" not in str(empty):
            raise
        return _not_json(None, f"{topic} has no records yet, so this is a file for raw ones")
    kind = kind_of([value for value in sample if value is not None])
    if kind != "json":
        words = f"{len(sample)} records were looked at; they are no JSON objects, so this is a file for"
        return _not_json(kind, f"{words} {kind or 'raw'} ones")
    chosen = ValueOptions.of({"value.format": "json", "value.schema": "infer"})
    assert chosen is not None, "a format was given"
    return looked_at_json(*infer_schema(chosen, sample))


def looked_at_json(struct: StructType, report: InferenceReport) -> Looked:
    """What the columns of JSON objects come to in the file, and a report that says the same. Pure."""
    # A text that always looks like a time is written as one: a person reads the file, and dead letters keep the rest.
    alike = {field.path: field.note.removeprefix("looks like ") for field in report.fields if field.note in _AS_TIMES}
    types = {field.name: alike.get(field.name) or field.dataType.simpleString().upper() for field in struct.fields}
    schema = ", ".join(f"{_column(name)} {kind}" for name, kind in types.items())
    written = tuple(
        replace(field, type=types[field.path], note="from text")
        if field.path in types and field.path in alike
        else field
        for field in report.fields
    )
    return Looked(
        format="json",
        schema=schema,
        columns=tuple(types),
        times=tuple(name for name, kind in types.items() if kind == "TIMESTAMP"),
        report=str(replace(report, ddl=schema, fields=written)),
        partition=next((name for wanted in _SPLITS for name, kind in types.items() if kind == wanted), None),
    )


def _not_json(kind: str | None, report: str) -> Looked:
    if kind == "text":
        return Looked(kind, None, ("value",), (), report)
    return Looked(None, None, ("key", "value", "topic", "partition", "offset", "timestamp"), ("timestamp",), report)


def kind_of(values: list[bytes]) -> str | None:
    """json, text or None for bytes that are neither; None too when there is nothing to look at."""
    if not values:
        return None
    if sum(map(_is_object, values)) >= JSON_SHARE * len(values):
        return "json"
    try:
        return (
            "text"
            if all(value.decode().isprintable() or b"\n" in value or b"\t" in value for value in values)
            else None
        )
    except UnicodeDecodeError:
        return None


def starting_file(*, name: str, topic: str, bootstrap: str, looked: Looked = NOT_LOOKED) -> str:
    """The text of the file; it is valid as it stands."""
    view = view_name(topic)
    lines = [
        "# A pipeline: sources → steps → sinks, run by Spark.",
        "#   penstock pipeline validate FILE    checks it",
        "#   penstock pipeline run FILE         runs it until Ctrl-C; --once until everything is processed",
        f"name = {_text(name)}",
        f"bootstrap = {_text(bootstrap)}",
        _line('warehouse = "lake"', "tables go below it, checkpoints below lake/_checkpoints"),
        "",
        "[spark]",
        _line('master = "local[*,4]"', "this machine; spark://HOST:7077 for a cluster"),
        '# settings = { "spark.sql.shuffle.partitions" = 4 }',
        "",
        f"[sources.{view}]",
        _line(f"topic = {_text(topic)}", 'or topics = ["a", "b"], or pattern = "orders-.*"'),
        *_decoding(topic, looked),
        _line('start = "earliest"', "or latest, or a time such as 2026-11-01T00:00:00Z"),
        *(
            _line(f'# watermark = {{ column = {_text(at)}, delay = "10 minutes" }}', "for windows")
            for at in looked.times[:1]
        ),
        _line("# options = { maxOffsetsPerTrigger = 100000 }", "any option of the source"),
        "",
        "# [[steps]]",
        _line('# name = "few"', "SQL over sources and other steps, by their names"),
        f'# sql = "SELECT {", ".join(map(_column, looked.columns[:3]))} FROM {view}"',
        "",
        "# [[steps]]",
        _line('# name = "scored"', "or a function, DataFrame → DataFrame, in my_steps.py beside this file"),
        '# python = "my_steps:score"',
        '# from = "few"',
        "",
        "[sinks.lake]",
        _line(f'from = "{view}"', "a source or a step"),
        _line(f"table = {_text(view)}", 'Delta, each record exactly once; or table_format = "iceberg"'),
        *([f"# partition_by = [{_text(looked.partition)}]"] if looked.partition is not None else []),
        _line('trigger = "10 seconds"', "or continuous, or available-now"),
        "",
        "# [sinks.out]",
        '# from = "few"',
        _line(f'# topic = "few-{topic}"', f"rows become JSON; key = {_text(looked.columns[0])} gives records a key"),
        "",
        "# [sinks.look]",
        '# from = "few"',
        "# console = true",
    ]
    return "\n".join(lines) + "\n"


def _decoding(topic: str, looked: Looked) -> list[str]:
    lines = []
    if looked.format is not None:
        lines.append(_line(f"format = {_text(looked.format)}", "json, csv, text, regex, avro; none: raw records"))
    if looked.schema is not None:
        lines.append(f"schema = {_text(looked.schema)}")
    if looked.format == "json":
        letters = _text(f"topic:{topic}.dead")
        lines.append(_line(f"dead_letters = {letters}", "what does not fit; or fail, drop, table:NAME"))
    return lines


def _line(code: str, comment: str) -> str:
    return f"{code:<36}  # {comment}"


def view_name(topic: str) -> str:
    """A topic's name as SQL takes it."""
    plain = re.sub(r"\W", "_", topic, flags=re.ASCII)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _column(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name}`"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_object(value: bytes) -> bool:
    try:
        found: Any = json.loads(value)
    except ValueError:
        return False
    return isinstance(found, dict)
