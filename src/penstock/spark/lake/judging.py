"""Rows that break a rule, taken out by the task that writes: what it counts is what lands, in one commit. Pure.

Spark evaluates the rules, in a column of bits beside the row: bit n is set where rule n does not hold. Whoever writes
a table looks at the bits, leaves out what is to be left out, and tells the driver how many rows broke which rule.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.errors import BadOption, SparkRoomError
from penstock.spark.lake.fitting import Unfit, row_as_json

BROKEN: Final = "__penstock_broken"
"""The column of bits; it is in no table."""
RULES_MAX: Final = 60
"""How many rules one column of bits has room for."""

RULE_BROKEN: Final = "expectation "
"""What the words of a dead letter begin with that a rule has made."""

KEEP, DROP, DEAD, SENT = "keep", "drop", "dead", "sent"
"""What becomes of a row that breaks a rule: it is counted; left out; left out and written to the dead letters of this
table; left out after its source has sent it to its own dead letters."""


class RuleBroken(SparkRoomError):
    """More rows of a batch break a rule than it allows: nothing of the batch was committed."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`within` is the share of a batch's rows that may break it; more of them fail the batch before its commit."""

    name: str
    sql: str
    otherwise: str = KEEP
    within: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A batch without what its rules leave out."""

    rows: pa.RecordBatch
    dead: tuple[Unfit, ...]
    dropped: int
    sent: int
    broken: tuple[int, ...]
    """How many rows broke each rule, whatever became of them."""


def to_option(rules: Sequence[Rule]) -> str:
    return json.dumps([[rule.name, rule.sql, rule.otherwise, rule.within] for rule in rules])


def of_option(text: str) -> tuple[Rule, ...]:
    """The inverse. It is this package's own option: what cannot be read was not written by it."""
    try:
        rules = tuple(Rule(str(name), str(sql), str(other), within) for name, sql, other, within in json.loads(text))
    except (ValueError, TypeError) as wrong:
        raise BadOption(f"option expect is not understood ({wrong}): pipelines set it, nobody else") from None
    if len(rules) > RULES_MAX:
        raise BadOption(f"{len(rules)} expectations meet in one table: {RULES_MAX} are the most")
    return rules


def judge_rows(batch: pa.RecordBatch, rules: Sequence[Rule]) -> Judged:
    """Takes the column of bits off, and with it the rows that are not to be written."""
    bits = batch.column(BROKEN)
    rows = batch.drop_columns([BROKEN])
    none = pa.scalar(0, pa.int64())
    breaks = [pc.not_equal(pc.bit_wise_and(bits, pa.scalar(1 << at, pa.int64())), none) for at in range(len(rules))]
    broken = tuple(int(pc.sum(each).as_py() or 0) for each in breaks)
    left = {kind: _any(bits, rules, kind) for kind in (SENT, DEAD, DROP)}
    # A row that breaks several rules has one end: the one that tells most of it.
    sent = left[SENT]
    dead = pc.and_not(left[DEAD], sent)
    dropped = pc.and_not(left[DROP], pc.or_(left[DEAD], sent))
    kept = pc.invert(pc.or_(pc.or_(left[SENT], left[DEAD]), left[DROP]))
    letters = [_letter(rows, at, bits[at].as_py(), rules) for at in pc.indices_nonzero(dead).to_pylist()]
    return Judged(rows.filter(kept), tuple(letters), _count(dropped), _count(sent), broken)


def check_within(rules: Sequence[Rule], broken: Sequence[int], rows: int, table: str) -> None:
    """Before anything is committed; `rows` are all that were judged."""
    for rule, count in zip(rules, broken, strict=True):
        if rule.within is not None and rows and count > rule.within * rows:
            raise RuleBroken(
                f"{count} of {rows} rows for the table {table} break the expectation {rule.name} ({rule.sql}), and "
                f"within allows {rule.within * 100:g} % of a batch: nothing of it was written. Mend what makes such "
                "rows, or allow more of them"
            )


def _any(bits: pa.Array, rules: Sequence[Rule], otherwise: str) -> pa.Array:
    mask = sum(1 << at for at, rule in enumerate(rules) if rule.otherwise == otherwise)
    return pc.not_equal(pc.bit_wise_and(bits, pa.scalar(mask, pa.int64())), pa.scalar(0, pa.int64()))


def _letter(rows: pa.RecordBatch, at: int, bits: int, rules: Sequence[Rule]) -> Unfit:
    first = next(rule for n, rule in enumerate(rules) if bits >> n & 1 and rule.otherwise == DEAD)
    return Unfit(first.name, words_of(first.name, first.sql), row_as_json(rows, at))


def words_of(name: str, sql: str) -> str:
    """What a dead letter says of the rule that made it one."""
    return f"{RULE_BROKEN}{name} does not hold: {sql}"


def _count(flags: pa.Array) -> int:
    return int(pc.sum(flags).as_py() or 0)
