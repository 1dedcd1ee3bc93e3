"""What the user chose for a topic's values. Pure: an option that cannot be right is refused before anything runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from penstock.model.closest import closest
from penstock.model.patterns import NotRe2, compile_re2
from penstock.spark.errors import BadOption

Format = Literal["json", "csv", "text", "regex", "avro", "raw"]
TimestampUnit = Literal["seconds", "millis", "micros"]
Wire = Literal["unsaid", "none", "confluent"]
"""Whether the number of a schema comes before an Avro value."""

FORMATS: Final = ("json", "csv", "text", "regex", "avro", "raw")
INFER: Final = "infer"
SAMPLE_DEFAULT: Final = 1000
SAMPLE_MOST: Final = 1_000_000
TIMESTAMP_UNITS: Final = {"seconds": 1_000_000, "millis": 1_000, "micros": 1}
"""How many microseconds a number in a timestamp column counts for."""
_SCHEMA_ID_MOST: Final = (1 << 31) - 1

_FOR_ALL: Final = ("value.format", "value.schema")
_ONLY_FOR: Final = {
    "value.schema.sample": ("json", "csv"),
    "value.timestamp.unit": ("json",),
    "value.csv.delimiter": ("csv",),
    "value.csv.quote": ("csv",),
    "value.csv.escape": ("csv",),
    "value.csv.null": ("csv",),
    "value.csv.header": ("csv",),
    "value.regex.pattern": ("regex",),
    "value.avro.schema": ("avro",),
    "value.avro.schema.id": ("avro",),
    "value.avro.wire": ("avro",),
}
OPTION_NAMES: Final = (*_FOR_ALL, *_ONLY_FOR)
"""Every option this room serves."""


@dataclass(frozen=True, slots=True)
class ValueOptions:
    """How values become columns. Pickles; equal options decode equally."""

    format: Format
    schema: str | None = None
    """DDL, "infer", or None where the format itself says what its columns are."""
    sample: int = SAMPLE_DEFAULT
    timestamp_unit: TimestampUnit = "seconds"
    csv_delimiter: str = ","
    csv_quote: str = '"'
    csv_escape: str = ""
    csv_null: str = ""
    regex_pattern: str = ""
    avro_schema: str = ""
    """JSON text: a file was read when the options were."""
    avro_wire: Wire = "unsaid"
    avro_schema_ids: tuple[int, ...] = ()
    """Numbers that a registry knows `avro_schema` by."""

    @property
    def inferred(self) -> bool:
        """Whether a sample must be looked at before the columns are known."""
        return self.schema == INFER

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ValueOptions | None:
        """The choice in a source's options, whose names know no case; None when values shall stay as they are.

        Options of others are passed over; one that begins with "value." and is not ours is refused.
        """
        given = {name.lower(): text for name, text in options.items() if name.lower().startswith("value.")}
        _refuse_unknown(given)
        if "value.format" not in given:
            if given:
                raise BadOption(f"{min(given)} is given without value.format, which is one of {_listed(FORMATS)}")
            return None
        chosen = given["value.format"].strip().lower()
        if chosen not in FORMATS:
            raise BadOption(f"value.format={given['value.format']} is unknown{_nearest(chosen, FORMATS)}")
        for name in sorted(given):
            serves = _ONLY_FOR.get(name, (chosen,))
            if chosen not in serves:
                raise BadOption(f"{name} is for value.format={' or '.join(serves)}, not {chosen}: remove it")
        schema = _schema(given, chosen)
        return cls(
            format=cast(Format, chosen),
            schema=schema,
            sample=_sample(given, schema),
            timestamp_unit=_timestamp_unit(given),
            csv_delimiter=_one_character(given, "value.csv.delimiter", ","),
            csv_quote=_one_character(given, "value.csv.quote", '"'),
            csv_escape=_one_character(given, "value.csv.escape", ""),
            csv_null=given.get("value.csv.null", ""),
            regex_pattern=_pattern(given, chosen),
            avro_schema=_avro_schema(given, chosen),
            avro_wire=_avro_wire(given),
            avro_schema_ids=_avro_schema_ids(given),
        )._checked(given)

    def _checked(self, given: Mapping[str, str]) -> ValueOptions:
        """Rules between options."""
        if given.get("value.csv.header", "false").strip().lower() not in ("false", "0"):
            raise BadOption("value.csv.header must be false: no record is a header; name the columns in value.schema")
        marks = [mark for mark in (self.csv_delimiter, self.csv_quote, self.csv_escape) if mark]
        if len(set(marks)) != len(marks):
            raise BadOption("value.csv.delimiter, value.csv.quote and value.csv.escape must differ from each other")
        return self


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for name in sorted(given):
        if name not in OPTION_NAMES:
            raise BadOption(f"option {name} is unknown{_nearest(name, OPTION_NAMES)}")


def _nearest(name: str, known: tuple[str, ...]) -> str:
    near = closest(name, known, least=0.6)
    return f": did you mean {near}?" if near is not None else f"; known are {_listed(known)}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def _schema(given: Mapping[str, str], chosen: str) -> str | None:
    text = given.get("value.schema", "").strip()
    if not text:
        if chosen in ("json", "csv"):
            raise BadOption(
                f"value.format={chosen} needs value.schema: columns such as 'id BIGINT, name STRING', or infer"
            )
        return None
    if chosen in ("text", "raw"):
        kind = "STRING" if chosen == "text" else "BINARY"
        raise BadOption(f"value.format={chosen} has one column, value {kind}: remove value.schema")
    if text.lower() != INFER:
        return text
    if chosen not in ("json", "csv"):
        raise BadOption(
            f"value.schema=infer is for json and csv; {chosen} says by itself what its columns are: remove value.schema"
        )
    return INFER


def _sample(given: Mapping[str, str], schema: str | None) -> int:
    text = given.get("value.schema.sample")
    if text is None:
        return SAMPLE_DEFAULT
    if schema != INFER:
        raise BadOption("value.schema.sample is for value.schema=infer: remove it")
    if not text.strip().isdecimal() or not 1 <= int(text) <= SAMPLE_MOST:
        raise BadOption(f"value.schema.sample={text} is not a number of records from 1 to {SAMPLE_MOST:,}")
    return int(text)


def _timestamp_unit(given: Mapping[str, str]) -> TimestampUnit:
    text = given.get("value.timestamp.unit", "seconds").strip().lower()
    if text not in TIMESTAMP_UNITS:
        raise BadOption(f"value.timestamp.unit={text} is unknown; known are {_listed(tuple(TIMESTAMP_UNITS))}")
    return cast(TimestampUnit, text)


def _one_character(given: Mapping[str, str], name: str, usual: str) -> str:
    text = given.get(name, usual)
    text = "\t" if text == "\\t" else text
    if text == usual:
        return text
    if len(text) != 1 or not text.isascii() or text in "\r\n\0":
        raise BadOption(f"{name}={text!r} must be one ASCII character that does not end a line (\\t is a tab)")
    return text


def _pattern(given: Mapping[str, str], chosen: str) -> str:
    if chosen != "regex":
        return ""
    pattern = given.get("value.regex.pattern", "")
    if not pattern:
        raise BadOption(
            r"value.format=regex needs value.regex.pattern with named groups, such as (?P<level>[A-Z]+) (?P<text>.*)"
        )
    group_names(pattern)
    return pattern


def group_names(pattern: str) -> tuple[str, ...]:
    """The named groups of an RE2 pattern, in order; `BadOption` when it is none or has none."""
    try:
        compiled = compile_re2(pattern)
    except NotRe2 as wrong:
        raise BadOption(f"value.regex.pattern is not a pattern of RE2: {wrong}") from None
    if not compiled.groupindex:
        raise BadOption("value.regex.pattern has no named group: write (?P<name>…) for each column")
    if len(compiled.groupindex) != compiled.groups:
        raise BadOption(
            "value.regex.pattern has groups without a name: name each with (?P<name>…), or write (?:…) for no column"
        )
    return tuple(sorted(compiled.groupindex, key=lambda name: int(compiled.groupindex[name])))


def _avro_schema(given: Mapping[str, str], chosen: str) -> str:
    if chosen != "avro":
        return ""
    text = given.get("value.avro.schema", "").strip()
    if not text:
        raise BadOption("value.format=avro needs value.avro.schema: the schema as JSON text, or the path of its file")
    if not text.startswith(("{", "[", '"')):
        path = text.removeprefix("file://").removeprefix("file:")
        try:
            with open(os.path.expanduser(path), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as wrong:
            raise BadOption(f"value.avro.schema={path} is neither JSON nor a file that can be read: {wrong}") from None
    try:
        json.loads(text)
    except ValueError as wrong:
        raise BadOption(f"value.avro.schema is not JSON: {wrong}") from None
    return text


def _avro_wire(given: Mapping[str, str]) -> Wire:
    said = "value.avro.schema.id" in given
    text = given.get("value.avro.wire", "confluent" if said else "unsaid").strip().lower()
    if text == "none" and said:
        raise BadOption(
            "value.avro.schema.id is for values with the number of a schema before them, and value.avro.wire=none says "
            "that values have none: remove one of them"
        )
    if text in ("none", "confluent") or (text == "unsaid" and "value.avro.wire" not in given):
        return cast(Wire, text)
    raise BadOption(
        f"value.avro.wire={text} is unknown: none, or confluent (five bytes before each value that name its schema)"
    )


def _avro_schema_ids(given: Mapping[str, str]) -> tuple[int, ...]:
    if "value.avro.schema.id" not in given:
        return ()
    parts = [part.strip() for part in given["value.avro.schema.id"].split(",")]
    if not all(part.isdecimal() and part.isascii() and int(part) <= _SCHEMA_ID_MOST for part in parts):
        raise BadOption(
            f"value.avro.schema.id={given['value.avro.schema.id']}: the numbers with commas between that the registry "
            "knows value.avro.schema by, such as 7 or 7,12"
        )
    return tuple(sorted({int(part) for part in parts}))
