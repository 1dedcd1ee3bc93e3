"""Reading a condition from a file: mistakes are noted where in its text they are."""

from __future__ import annotations

from penstock.conditions.grammar import ConditionBroken, parse
from penstock.conditions.meaning import patterns_of
from penstock.conditions.nodes import Condition
from penstock.conditions.patterns import Pattern, PatternBroken, compile_pattern
from penstock.declared.fields import Table

SLOW = (
    "only Python's re takes this pattern (look-around or back-references), and there are lines that keep it busy for "
    "very long; write it without them if you can"
)


def read_condition(table: Table, key: str, text: str) -> Condition | None:
    """The condition; None when it is wrong, which is noted."""
    try:
        condition = parse(text)
    except ConditionBroken as broken:
        place = table.notes.positions.inside((*table.path, key), text, broken.at)
        table.notes.wrong_at(place, broken.words)
        return None
    good = [read_pattern(table, key, pattern) is not None for pattern in patterns_of(condition)]
    return condition if all(good) else None


def read_pattern(table: Table, key: str, text: str) -> Pattern | None:
    """The pattern; None when it is wrong, which is noted. One that can be slow is warned of."""
    try:
        pattern = compile_pattern(text)
    except PatternBroken as broken:
        table.wrong(key, str(broken))
        return None
    if not pattern.linear:
        table.notes.warn((*table.path, key), SLOW)
    return pattern
