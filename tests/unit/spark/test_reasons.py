"""What Spark says becomes a sentence, and whether another try could help. `spark_failures.json` has what it said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.spark.errors import BadOption, CommitRefused, DataLost, Missing, TopicLost
from penstock.spark.lake.store import CannotEvolve, Conflicted, NotUnderstood
from penstock.spark.reasons import WORDS_MAX, Reason, reason_in, reason_of

SAID = json.loads((Path(__file__).parent / "spark_failures.json").read_text())
"""Texts of Spark 4.3, as queries of ours ended with them; only Java's frames are fewer and paths are others."""


def failure(name: str) -> Exception:
    kind: type[Exception] = type(SAID[name]["kind"], (Exception,), {})
    return kind(SAID[name]["text"])


HEALS, HOPELESS, RESET = (False, False), (True, False), (True, True)
"""Whether another try would end the same way, and whether one without the checkpoint would not."""


@pytest.mark.parametrize(
    ("name", "begins", "hope"),
    [
        # Code of the user's: the last line of the traceback comes first, and where it was.
        ("udf", "OrderTooOld: orders from before the war (steps.py, line 36, in boom)", HEALS),
        ("udf-zero", "ZeroDivisionError: integer division or modulo by zero (steps.py, line 39, in zero)", HOPELESS),
        ("foreach-keyerror", "KeyError: 'customer' (steps.py, line 41, in fb)", HEALS),
        ("foreach-chained", "RuntimeError: outer of two (steps.py, line 47, in fb3)", HEALS),
        ("foreach-analysis", "the SQL names a column that its input has not ([UNRESOLVED_COLUMN", HOPELESS),
        # Rows that will be the same rows in the next try.
        ("cast-ansi", "[CAST_INVALID_INPUT] The value 'x0' of the type", HOPELESS),
        ("div-zero", "[DIVIDE_BY_ZERO] Division by zero.", HOPELESS),
        ("undecodable", "u, partition 0, offset 6: not JSON", HOPELESS),
        # A query that does not fit its table or its log.
        ("lake-type", "the rows may not fit the delta table /home/ann/lake/tab: n is string", HOPELESS),
        ("lost", "t-0: 10 offsets from 20 to 30 are gone, deleted by retention or by hand.", HOPELESS),
        ("recreated", "t-0: 20 offsets from 20 to 40 are gone: topic 't': it was deleted and made anew", HOPELESS),
        # A checkpoint that is another query's, torn, or not whole.
        (
            "two-sources",
            "assertion failed: There are [1] sources in the checkpoint offsets and now there are [2]",
            RESET,
        ),
        ("torn-offsets", "Failed to read log file file:/home/ann/lake/cpD/offsets/0. Incomplete log file", RESET),
        ("torn-metadata", "ChecksumException: Checksum error: file:/home/ann/lake/cpE/metadata", RESET),
        ("state-gone", "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart", RESET),
        # SQL that cannot be planned.
        ("parse", "the SQL is no SQL ([PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'.", HOPELESS),
        ("parse2", "the SQL is no SQL ([PARSE_SYNTAX_ERROR] Syntax error at or near 'n'.", HOPELESS),
        ("nocol", "the SQL names a column that its input has not ([UNRESOLVED_COLUMN.WITH_SUGGESTION]", HOPELESS),
        ("notable", "the SQL reads a name that is neither a source nor a step ([TABLE_OR_VIEW_NOT_FOUND]", HOPELESS),
        ("nofunc", "[UNRESOLVED_ROUTINE] Cannot resolve routine `sume`", HOPELESS),
        ("types", "[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] Cannot resolve", HOPELESS),
        ("noagg", "[MISSING_GROUP_BY] The query does not include a GROUP BY clause.", HOPELESS),
        ("append-agg", 'the rows are aggregates that may still change: say mode = "update"', HOPELESS),
    ],
)
def test_the_reason_comes_first_and_what_cannot_heal_is_known(name: str, begins: str, hope: tuple[bool, bool]) -> None:
    reason = reason_of(failure(name))
    assert reason.words.startswith(begins)
    assert (reason.hopeless, reason.reset) == hope
    for noise in ("Traceback", "runId", "Logical Plan", "XXKST", "\n", "at org.apache"):
        assert noise not in reason.words


def test_every_text_that_spark_gave_is_looked_at() -> None:
    (parametrized,) = test_the_reason_comes_first_and_what_cannot_heal_is_known.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in parametrized.args[1]} == set(SAID)


@pytest.mark.parametrize("kind", [BadOption, CannotEvolve, CommitRefused, DataLost, NotUnderstood, TopicLost])
def test_what_we_refused_stays_refused(kind: type[Exception]) -> None:
    within = f"[STREAM_FAILED] Query [id = x, runId = y] terminated with exception: Job aborted\n{trace(kind)}"
    for reason in (reason_of(kind("the table\nstands elsewhere")), reason_in(within)):
        assert reason == Reason(
            "the table stands elsewhere", True, kind in (CommitRefused, TopicLost), kind in (DataLost, TopicLost)
        )


@pytest.mark.parametrize("kind", [Missing, Conflicted])
def test_brokers_that_are_away_and_other_writers_may_heal(kind: type[Exception]) -> None:
    within = f"[STREAM_FAILED] Query [id = x, runId = y] terminated with exception: Job aborted\n{trace(kind)}"
    assert reason_in(within) == Reason("the table stands elsewhere", False)


def trace(kind: type[Exception]) -> str:
    return (
        'Traceback (most recent call last):\n  File "/x/sink.py", line 3, in commit\n    raise …\n'
        f"{kind.__module__}.{kind.__name__}: the table\nstands elsewhere\n SQLSTATE: 38000 SQLSTATE: XXKST\n"
        "=== Streaming Query ===\nIdentifier: [id = x]"
    )


def test_a_state_that_another_query_wrote_is_begun_anew() -> None:
    text = (
        "[STREAM_FAILED] Query [id = x] terminated with exception: [STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] "
        "Provided value schema does not match existing state value schema. SQLSTATE: XXKST SQLSTATE: XXKST"
    )
    reason = reason_in(text)
    assert reason is not None
    assert (reason.hopeless, reason.reset, reason.changed) == (True, True, True)


def test_a_disk_that_does_not_answer_may_heal() -> None:
    text = (
        "[STREAM_FAILED] Query [id = x, runId = y] terminated with exception: "
        "[STREAMING_CHECKPOINT_LOG_WRITE_FAILURE.OFFSET_LOG] Failed to write. SQLSTATE: 58030 SQLSTATE: XXKST"
    )
    assert reason_in(text) == Reason(
        "[STREAMING_CHECKPOINT_LOG_WRITE_FAILURE.OFFSET_LOG] Failed to write. SQLSTATE: 58030", False
    )


def test_what_went_wrong_in_java_is_told_by_its_cause() -> None:
    text = (
        "[STREAM_FAILED] Query [id = x] terminated with exception: Return Message: Traceback (most recent call last):\n"
        '  File "/home/ann/steps.py", line 3, in fb\n'
        "py4j.protocol.Py4JJavaError: An error occurred while calling o1.save.\n"
        ": org.apache.spark.SparkException: Job aborted\n\tat org.x\nCaused by: java.io.IOException: disk full\n\tat x"
    )
    assert reason_in(text) == Reason("IOException: disk full", False)


def test_exceptions_that_are_nobodys_are_told_by_their_kind() -> None:
    assert reason_of(ValueError("odd")) == Reason("ValueError: odd", False)
    assert reason_of(ModuleNotFoundError("No module named 'x'")).hopeless
    assert reason_of(RuntimeError()) == Reason("RuntimeError", False)


def test_a_long_reason_says_that_it_was_cut() -> None:
    reason = reason_of(CommitRefused("x" * 10_000))
    assert len(reason.words) == WORDS_MAX + 2
    assert reason.words.endswith("x …")
