"""The bits of rules become rows that stay, rows that go, and counts that add up."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.errors import BadOption
from penstock.spark.lake.evolution import plan_fit
from penstock.spark.lake.judging import (
    BROKEN,
    DEAD,
    DROP,
    KEEP,
    SENT,
    Rule,
    RuleBroken,
    check_within,
    judge_rows,
    of_option,
    to_option,
)
from penstock.spark.lake.writing import WritePlan, write_rows

RULES = (Rule("a", "x > 0", KEEP), Rule("b", "x > 1", DROP), Rule("c", "x > 2", DEAD, 0.5), Rule("d", "x > 3", SENT))


def batch_of(bits: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"id": list(range(len(bits))), BROKEN: pa.array(bits, pa.int64())})


@given(st.lists(st.integers(0, 15), max_size=40))
def test_every_row_has_one_end_and_every_rule_its_count(bits: list[int]) -> None:
    judged = judge_rows(batch_of(bits), RULES)
    ends = {n: SENT if n & 8 else DEAD if n & 4 else DROP if n & 2 else KEEP for n in range(16)}
    by_end = {end: [at for at, n in enumerate(bits) if ends[n] == end] for end in (KEEP, DROP, DEAD, SENT)}
    assert judged.rows.to_pydict() == {"id": by_end[KEEP]}
    assert [json.loads(letter.row)["id"] for letter in judged.dead] == by_end[DEAD]
    assert (judged.dropped, judged.sent) == (len(by_end[DROP]), len(by_end[SENT]))
    assert judged.broken == tuple(sum(n >> at & 1 for n in bits) for at in range(4))
    assert len(bits) == judged.rows.num_rows + len(judged.dead) + judged.dropped + judged.sent


def test_a_letter_says_which_rule_it_broke() -> None:
    (letter,) = judge_rows(batch_of([4]), RULES).dead
    assert (letter.column, letter.error) == ("c", "expectation c does not hold: x > 2")


def test_rules_come_back_from_the_option_as_they_were() -> None:
    assert of_option(to_option(RULES)) == RULES
    with pytest.raises(BadOption, match="pipelines set it"):
        of_option("{}x")
    with pytest.raises(BadOption, match="61 expectations meet in one table: 60"):
        of_option(to_option([RULES[0]] * 61))


def test_more_than_a_rule_allows_is_refused_before_the_commit() -> None:
    check_within(RULES, (9, 9, 5, 9), 10, "t")
    with pytest.raises(RuleBroken, match=r"6 of 10 rows for the table t break the expectation c .x > 2., and within"):
        check_within(RULES, (0, 0, 6, 0), 10, "t")


def test_a_task_writes_what_stays_and_counts_the_rest(tmp_path: Path) -> None:
    rows = pa.schema([("id", pa.int64())])
    plan = WritePlan(
        table="t",
        directory=str(tmp_path),
        fit=plan_fit(rows, None, can_widen=lambda *_: False, add=True),
        partition=(),
        keeps_partition_columns=False,
        compression="zstd",
        target_bytes=1 << 20,
        dead_directory=str(tmp_path / "dead"),
        rules=RULES,
    )
    written = write_rows([batch_of([0, 1, 2]), batch_of([4, 8, 0])], plan, attempt="x", query="q", batch=3)
    assert (written.rows, written.dropped, written.dead, written.sent) == (3, 1, 1, 1)
    assert written.broken == (1, 1, 1, 1)
    assert sum(file.rows for file in written.files) == 3
    assert sum(file.rows for file in written.dead_files) == 1
