"""What Spark says becomes a sentence, and whether another try could help."""

from __future__ import annotations

from penstock.spark.errors import DataLost
from penstock.spark.pipeline.reasons import Reason, reason_of


class StreamingQueryException(Exception):
    pass


class AnalysisException(Exception):
    pass


def test_our_own_words_are_found_in_sparks_wrapping() -> None:
    text = (
        "[STREAM_FAILED] Query [id = x, runId = y] terminated with exception: Job aborted\n"
        'Traceback (most recent call last):\n  File "/x/sink.py", line 3, in commit\n'
        "penstock.spark.errors.CommitRefused: table /lake/orders stands at 120,\n"
        "the batch begins at 100\n\tat org.apache.spark.Something(X.scala:1)\n"
    )
    assert reason_of(StreamingQueryException(text)) == Reason(
        "table /lake/orders stands at 120, the batch begins at 100", True
    )
    assert reason_of(DataLost("gone")) == Reason("gone", True)


def test_brokers_that_are_away_may_come_back() -> None:
    text = (
        "[STREAM_FAILED] Query terminated with exception: Traceback (most recent call last):\n"
        "penstock.spark.errors.Missing: no broker answers at b:1 (tried for 29 s)\n SQLSTATE: 38000\n"
        "=== Streaming Query ===\nIdentifier: x"
    )
    assert reason_of(StreamingQueryException(text)) == Reason("no broker answers at b:1 (tried for 29 s)", False)


def test_other_failures_of_python_are_told_by_their_last_line_and_tried_again() -> None:
    text = (
        "[STREAM_FAILED] Query [id = x] terminated\nTraceback (most recent call last):\n"
        '  File "x"\nOSError: [Errno 28] No space left on device\n\n\tat org'
    )
    reason = reason_of(StreamingQueryException(text))
    assert reason == Reason("OSError: [Errno 28] No space left on device", False)


def test_what_went_wrong_in_java_is_told_by_its_cause() -> None:
    text = (
        "[STREAM_FAILED] x\npy4j.protocol.Py4JJavaError: An error occurred while calling o1.save.\n"
        ": org.apache.spark.SparkException: Job aborted\n\tat org.x\nCaused by: java.io.IOException: disk full\n\tat x"
    )
    assert reason_of(StreamingQueryException(text)) == Reason("IOException: disk full", False)


def test_an_aggregate_that_cannot_be_appended_is_explained() -> None:
    reason = reason_of(AnalysisException("[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid mode: append;\nplan"))
    assert reason.hopeless
    assert 'say mode = "update"' in reason.words


def test_plans_and_java_traces_are_left_out() -> None:
    reason = reason_of(
        AnalysisException("[UNRESOLVED_COLUMN.X] no `a`. SQLSTATE: 4; line 1 pos 7;\n'Project ['a]\n+- x")
    )
    assert "Project" not in reason.words
    assert reason_of(ValueError("odd")) == Reason("ValueError: odd", False)
