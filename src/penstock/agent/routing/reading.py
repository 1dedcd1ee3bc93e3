"""Reading where an input's records go; what is wrong is noted with its place."""

from __future__ import annotations

from typing import cast

from penstock.agent.routing.routing import HEADER_NAMES, Encode, Routing
from penstock.agent.routing.templates import Template, TemplateBroken
from penstock.agent.routing.topics import wrong_topic
from penstock.conditions.paths import wrong_path
from penstock.declared.fields import Table
from penstock.declared.mistakes import did_you_mean

_NOWHERE = Template("", ())


def read_routing(table: Table) -> Routing:
    """topic, key, timestamp, headers, encode and dead_letters of an input's table."""
    topic = table.required_text("topic", 'where its records go, such as topic = "logs" or "logs.{host}"')
    return Routing(
        topic=(read_topic(table, "topic", topic) if topic else None) or _NOWHERE,
        key=_read_key(table),
        timestamp=_read_field(table, "timestamp"),
        headers=_read_headers(table),
        encode=cast(Encode, table.choice("encode", ("raw", "json", "auto"), "auto")),
        dead_letters=_read_dead_letters(table),
    )


def read_topic(table: Table, key: str, text: str) -> Template | None:
    """A topic or a template of topics; None when it is wrong, which is noted."""
    template = read_template(table, key, text)
    if template is None:
        return None
    wrong = wrong_topic(template.filled("x") or "x")
    if wrong is not None:
        table.wrong(key, wrong)
        return None
    return template


def read_template(table: Table, key: str, text: str) -> Template | None:
    """A template; None when it is wrong, which is noted where in its text."""
    try:
        return Template.parse(text)
    except TemplateBroken as broken:
        path = (*table.path, key)
        table.notes.wrong_at(table.notes.positions.inside(path, text, broken.at), broken.words)
        return None


def _read_key(table: Table) -> Template | None:
    key = table.text("key")
    if key is None:
        return None
    if "{" in key or "}" in key:
        return read_template(table, "key", key)
    wrong = wrong_path(key)
    if wrong is not None:
        table.wrong("key", wrong)
        return None
    # `key = "host"` means the field: the origin's is a template, "{host}".
    return read_template(table, "key", f"{{.{key}}}")


def _read_field(table: Table, key: str) -> str | None:
    path = table.text(key)
    wrong = None if path is None else wrong_path(path)
    if wrong is not None:
        table.wrong(key, wrong)
    return path


def _read_headers(table: Table) -> tuple[str, ...] | None:
    names = table.texts("headers")
    for index, name in enumerate(names):
        if name not in HEADER_NAMES:
            table.notes.wrong(
                (*table.path, "headers", index), f"there is no header {name!r}{did_you_mean(name, HEADER_NAMES)}"
            )
    return tuple(dict.fromkeys(names)) if "headers" in table else None


def _read_dead_letters(table: Table) -> Template | None:
    text = table.text("dead_letters")
    template = None if text is None else read_topic(table, "dead_letters", text)
    if template is not None and template.fields:
        table.wrong("dead_letters", f"what cannot be understood has no field {template.fields[0]!r}: name one topic")
        return None
    return template
