"""Rules on rows, as a pipeline file says them: on a source, a step or a sink. Pure.

    [sources.orders.expect]                       # counted, and kept
    cheap = "amount < 1000"
    known = { rule = "country IS NOT NULL", otherwise = "dead", within = "0.1 %" }

    [sources.orders.expect_or_drop]               # left out; kept aside where there are dead letters
    positive = "amount > 0"

    [sources.orders.expect_or_fail]               # the batch fails, nothing of it is written
    numbered = "id IS NOT NULL"

A rule holds where it is true: null is not true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from penstock.declared.fields import Table
from penstock.declared.positions import Path
from penstock.spark.lake import judging
from penstock.spark.lake.judging import Rule


class Otherwise(StrEnum):
    """What becomes of a row that breaks a rule. The words are those of the file."""

    KEEP = "keep"
    DROP = "drop"
    DEAD = "dead"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Expectation:
    """`within` is the share of a batch's rows that may break the rule; with more of them the batch fails."""

    name: str
    rule: str
    otherwise: Otherwise = Otherwise.KEEP
    within: float | None = None
    path: Path = ()
    """The keys under which the file has the rule itself."""


EXPECT, OR_DROP, OR_FAIL = "expect", "expect_or_drop", "expect_or_fail"
MOST: Final = 20
"""Expectations of one source, step or sink: those of two meet in one table."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHARE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


def expectations_of(table: Table, *, letters: bool, counts: bool = False) -> tuple[Expectation, ...]:
    """The three tables of one place. `letters` says whether it has dead letters, which dropped rows go to; `counts`,
    whether a batch can be judged whole before it is committed."""
    found: list[Expectation] = []
    for key, otherwise in (
        (EXPECT, Otherwise.KEEP),
        (OR_DROP, Otherwise.DEAD if letters else Otherwise.DROP),
        (OR_FAIL, Otherwise.FAIL),
    ):
        rules = table.table(key)
        if rules is not None:
            found += _rules(rules, otherwise, letters=letters, counts=counts)
    taken: dict[str, str] = {}
    for each in found:
        other = taken.setdefault(each.name.lower(), each.path[len(table.path)])  # type: ignore[arg-type]
        here = each.path[len(table.path)]
        if other != here:
            table.notes.wrong(each.path, f"the name {each.name!r} is taken in {other}: counts go by names, give it one")
    if len(found) > MOST:
        words = f"{table.title} has {len(found)} expectations, {MOST} are the most: join some of them by AND"
        table.notes.wrong(found[MOST].path, words)
    return tuple(found)


def _rules(rules: Table, otherwise: Otherwise, *, letters: bool, counts: bool) -> Iterator[Expectation]:
    for name, value in rules.values.items():
        if not _NAME.fullmatch(name):
            rules.wrong(name, f"{name!r} is no name for an expectation: letters, digits and _, and no digit first")
            continue
        if isinstance(value, Mapping):
            made = _long(Table(value, (*rules.path, name), rules.notes, f"{rules.title}.{name}"), name, rules, counts)
        else:
            rule = rules.text(name)
            made = Expectation(name, rule, otherwise, path=(*rules.path, name)) if rule else None
        if made is None:
            continue
        if made.otherwise is Otherwise.DEAD and not letters:
            words = 'otherwise = "dead" needs a place for dead letters'
            rules.notes.wrong(
                (*rules.path, name, "otherwise"),
                f'{words}: dead_letters = "table:NAME" beside it (a source, or a sink that is a table, has one)',
            )
        yield made


def _long(table: Table, name: str, rules: Table, counts: bool) -> Expectation | None:
    rule = table.required_text("rule", 'the SQL that is to hold, such as rule = "amount > 0"')
    if rules.path[-1] != EXPECT and "otherwise" in table:
        table.wrong("otherwise", f"{rules.path[-1]} says already what becomes of such rows: write it under {EXPECT}")
    default = {OR_DROP: Otherwise.DROP, OR_FAIL: Otherwise.FAIL}.get(str(rules.path[-1]), Otherwise.KEEP)
    otherwise = Otherwise(table.choice("otherwise", [each.value for each in Otherwise], default.value))
    within = _within(table, otherwise, counts)
    table.finish()
    return Expectation(name, rule, otherwise, within, (*table.path, "rule")) if rule else None


def _within(table: Table, otherwise: Otherwise, counts: bool) -> float | None:
    given = table.text("within")
    if given is None:
        return None
    share = _SHARE.fullmatch(given)
    if share is None or not float(share[1]) < 100:
        table.wrong("within", f'within = {given!r} is no share of rows such as "0.1 %", below 100 %')
        return None
    if otherwise is Otherwise.FAIL:
        table.wrong("within", "within allows some rows to break the rule, and fail allows none: leave one of them out")
    elif not counts:
        table.wrong(
            "within", "within is judged before a table's commit: write the expectation on a sink that is a table"
        )
    return float(share[1]) / 100


def rules_of(reads: Sequence[Expectation], own: Sequence[Expectation]) -> list[Rule]:
    """What the writer of a table is told: the rules of what it reads, then its own.

    Dead rows of a source were sent by the source; those of the sink are for its writer. What fails never gets there.
    """
    of_source = {Otherwise.DEAD: judging.SENT, Otherwise.FAIL: judging.KEEP}
    of_sink = {Otherwise.FAIL: judging.KEEP}
    return [
        Rule(each.name, each.rule, words.get(each.otherwise, each.otherwise.value), each.within)
        for expectations, words in ((reads, of_source), (own, of_sink))
        for each in expectations
    ]
