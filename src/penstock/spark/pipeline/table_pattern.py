"""`orders_{country}`: the name of a table for each value of a field. Pure.

A name comes from a value only where the value is a plain word: what could leave the warehouse, or be another table's
name on some file system, names none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

VALUE: Final = "[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
"""What a value has to look like to name a table; Spark and Python read this pattern alike."""
TABLES_MAX: Final = 100
TABLES_MOST: Final = 1000

_FIELD: Final = re.compile(r"\{([^{}]*)\}")
_PLAIN: Final = re.compile(VALUE)


@dataclass(frozen=True, slots=True)
class TablePattern:
    """`field` is the column whose values name tables."""

    before: str
    field: str
    after: str

    @classmethod
    def of(cls, target: str) -> TablePattern | None:
        """None for the name of one table."""
        found = _FIELD.search(target)
        return cls(target[: found.start()], found[1], target[found.end() :]) if found else None

    def name_of(self, value: str) -> str | None:
        """None for a value that names no table."""
        return f"{self.before}{value}{self.after}" if _PLAIN.fullmatch(value) else None

    def may_name(self, table: str) -> bool:
        """Whether some value names that table."""
        return bool(re.fullmatch(f"{re.escape(self.before)}{VALUE}{re.escape(self.after)}", table))


def complaint_of(target: str) -> str:
    """What is wrong with a name that has braces; "" when nothing is."""
    if not ("{" in target or "}" in target):
        return ""
    pattern = TablePattern.of(target)
    if pattern is None or "{" in pattern.after or "}" in pattern.before + pattern.after or "{" in pattern.before:
        return f'table = {target!r} names no field: write one, once, such as table = "orders_{{country}}"'
    if not pattern.field.strip():
        return f"table = {target!r} has no name in its braces: the column whose values name the tables"
    return ""
