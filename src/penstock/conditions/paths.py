"""Fields by their names; dots lead into nested ones. A field that is null counts as not there. Pure."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any, Final, TypeAlias

Fields: TypeAlias = dict[str, Any]
"""An event, or a record's value, by the names of its fields."""
Getter: TypeAlias = Callable[[Fields], Any]
Setter: TypeAlias = Callable[[Fields, Any], None]
Remover: TypeAlias = Callable[[Fields], Any]

MESSAGE: Final = "message"
"""What an event that nobody understood yet consists of: this field is its line."""


def getter(path: str) -> Getter:
    """Looks a field up; None when it is not there. A key that has the dots in its own name comes first."""
    if "." not in path:
        return methodcaller("get", path)
    parts = path.split(".")

    def walk(fields: Fields) -> Any:
        if path in fields:
            return fields[path]
        value: Any = fields
        for part in parts:
            if not isinstance(value, dict):
                return None
            value = value.get(part)
        return value

    return walk


def setter(path: str) -> Setter:
    """Sets a field; tables on the way are made, and what stands in the way there is replaced."""
    if "." not in path:

        def put(fields: Fields, value: Any) -> None:
            fields[path] = value

        return put
    *above, last = path.split(".")

    def put_inside(fields: Fields, value: Any) -> None:
        if path in fields:
            fields[path] = value
            return
        table = fields
        for part in above:
            inner = table.get(part)
            if not isinstance(inner, dict):
                inner = table[part] = {}
            table = inner
        table[last] = value

    return put_inside


def remover(path: str) -> Remover:
    """Takes a field out and returns it; None when it was not there."""
    if "." not in path:
        return methodcaller("pop", path, None)
    *above, last = path.split(".")

    def take(fields: Fields) -> Any:
        if path in fields:
            return fields.pop(path)
        table: Any = fields
        for part in above:
            table = table.get(part)
            if not isinstance(table, dict):
                return None
        return table.pop(last, None)

    return take


def wrong_path(path: str) -> str | None:
    """What is wrong with the name of a field, if anything."""
    if not path.strip():
        return "the name of a field is empty"
    if any(not part for part in path.split(".")):
        return f"{path!r} is no name of a field: between dots there must be a name"
    return None
