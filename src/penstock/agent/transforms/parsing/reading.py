"""Reading a parse step: each form has its own options."""

from __future__ import annotations

from typing import Any, Final, cast

from penstock.agent.routing.batch import OnError
from penstock.agent.transforms.conditions import read_pattern
from penstock.agent.transforms.parsing.access_log import FORMATS
from penstock.agent.transforms.parsing.parse import Parse
from penstock.agent.transforms.parsing.parser import CONVERTERS
from penstock.conditions.paths import MESSAGE, wrong_path
from penstock.declared.fields import Table
from penstock.declared.mistakes import did_you_mean

FORMS: Final = ("json", "logfmt", "csv", "regex", "access_log")


def read_parse(table: Table, title: str) -> Parse | None:
    form = table.text("parse")
    if form is None:
        return None
    if form not in FORMS:
        table.wrong("parse", f"there is no form {form!r}{did_you_mean(form, FORMS)}")
        return None
    own: dict[str, Any] = {}
    match form:
        case "csv":
            own = _read_csv(table)
        case "regex":
            own = _read_regex(table)
        case "access_log":
            own = {"log_format": table.choice("format", FORMATS, "auto")}
    if form in ("csv", "regex", "logfmt"):
        own["types"] = _read_types(table)
    on_error = table.choice("on_error", ("keep", "drop", "dead"), "")
    return Parse(
        title=title.replace("(parse)", f"(parse {form})"),
        form=form,
        source=_read_source(table),
        into=_read_into(table),
        keep_original=table.flag("keep_original"),
        on_error=cast(OnError, on_error),
        **own,
    )


def _read_source(table: Table) -> str:
    source = table.text("from") or MESSAGE
    wrong = wrong_path(source)
    if wrong is not None:
        table.wrong("from", wrong)
    return source


def _read_into(table: Table) -> str:
    into = table.text("into") or ""
    if into.count("*") > 1:
        table.wrong("into", f"into = {into!r} has more than one *: it stands for the name of the field")
    wrong = wrong_path(into) if into and "*" not in into else None
    if wrong is not None:
        table.wrong("into", wrong)
    return into


def _read_csv(table: Table) -> dict[str, Any]:
    columns = table.texts("columns")
    if not columns and not isinstance(table.values.get("columns"), list):
        table.wrong(None, f'{table.title} has no columns: name them, such as columns = ["id", "name"]')
    doubled = {name for name in columns if columns.count(name) > 1}
    if doubled:
        table.wrong("columns", f"{min(doubled)!r} is there more than once")
    delimiter, quote = _read_character(table, "delimiter", ","), _read_character(table, "quote", '"')
    if delimiter == quote:
        table.wrong("quote", f"quote and delimiter are both {quote!r}")
    return {
        "columns": columns,
        "delimiter": delimiter,
        "quote": quote,
        "skip_header": table.flag("skip_header"),
    }


def _read_character(table: Table, key: str, default: str) -> str:
    value = table.value(key)
    if value is None:
        return default
    if not isinstance(value, str) or len(value) != 1 or value in "\r\n":
        table.wrong(key, f'{key} must be one character, such as {key} = ";"')
        return default
    return value


def _read_regex(table: Table) -> dict[str, Any]:
    text = table.required_text("pattern", "one with named groups, such as '^(?P<level>[A-Z]+) (?P<text>.*)$'")
    pattern = read_pattern(table, "pattern", text) if text else None
    if pattern is not None and not pattern.names:
        table.wrong("pattern", "it has no named groups, so it makes no fields: write (?P<name>…)")
    return {"pattern": text}


def _read_types(table: Table) -> tuple[tuple[str, str], ...]:
    types = []
    for name, kind in table.options("types").items():
        if kind not in CONVERTERS:
            table.notes.wrong(
                (*table.path, "types", name), f"{name} cannot be {kind!r}{did_you_mean(kind, CONVERTERS)}"
            )
        types.append((name, kind))
    return tuple(types)
