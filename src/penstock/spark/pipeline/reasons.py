"""Why a query failed, as a sentence for people, and whether trying again could help. Pure.

Spark wraps what happened into its own exceptions, with a Python traceback and a Java one. Ours is in there by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from penstock.spark.errors import BadOption, CommitRefused, DataLost, Missing, SparkRoomError, Undecodable

_HOPELESS: Final = (BadOption, CommitRefused, DataLost, Undecodable)
"""What stays wrong until somebody does something. A broker or a topic that is missing may come back."""

_OURS = re.compile(
    r"penstock\.spark\.[\w.]*?(\w+): (.*?)(?=\s+SQLSTATE|\s+===|\n\s*at |\nTraceback|\n\n|\Z)", re.DOTALL
)
_PYTHON = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Lost|Refused|Timeout\w*)): (.*)$", re.MULTILINE)
_CAUSED = re.compile(r"^Caused by: (?:[\w$]+\.)*(\w+: .*)$", re.MULTILINE)
_CLASS = re.compile(r"^\[([A-Z][A-Z0-9_.]+)\]\s*")
_SPARK_SAYS: Final = {
    "STREAMING_OUTPUT_MODE": (
        'the rows are aggregates that may still change: say mode = "update" (a row at each change) or "complete" in '
        "the sink, or give the source a watermark and group by a window of its column"
    ),
    "TABLE_OR_VIEW_NOT_FOUND": "the SQL reads a name that is neither a source nor a step",
    "UNRESOLVED_COLUMN": "the SQL names a column that its input has not",
}
WORDS_MAX: Final = 600


@dataclass(frozen=True, slots=True)
class Reason:
    """`hopeless` means that another try would end the same way."""

    words: str
    hopeless: bool


def reason_of(failure: BaseException) -> Reason:
    """What to tell of an exception that building, starting or running a query raised."""
    if isinstance(failure, SparkRoomError):
        return Reason(str(failure), isinstance(failure, _HOPELESS))
    text = str(failure)
    ours = _ours(text)
    if ours is not None:
        return ours
    kind = type(failure).__name__
    planned = kind in ("AnalysisException", "ParseException")
    python = [] if planned else _PYTHON.findall(text)
    if python:
        name, words = python[-1]
        caused = _CAUSED.findall(text) if name.endswith("Py4JJavaError") else []
        if caused:
            # Python called Java, and what went wrong went wrong there.
            return Reason(caused[-1][:WORDS_MAX], False)
        return Reason(f"{name}: {words}"[:WORDS_MAX], False)
    code = _CLASS.match(text)
    if code is not None:
        hint = next((words for start, words in _SPARK_SAYS.items() if code[1].startswith(start)), None)
        told = _first(text)
        # A query that ran and then failed may run again; one that could not even be planned will not.
        return Reason(f"{hint} ({told})" if hint else told, planned)
    return Reason(f"{kind}: {_first(text)}" if text else kind, kind in ("ImportError", "ModuleNotFoundError"))


def _ours(text: str) -> Reason | None:
    found = None
    for name, words in _OURS.findall(text):
        told = " ".join(words.split())[:WORDS_MAX]
        if name in {each.__name__ for each in _HOPELESS}:
            return Reason(told, True)
        if name in (Missing.__name__, SparkRoomError.__name__):
            found = Reason(told, False)
    return found


def _first(text: str) -> str:
    """The sentence before plans, stack traces and the SQL itself."""
    kept = re.split(r"\n(?:Traceback|\s*at |== SQL ==|=== Streaming Query|JVM stacktrace)|;\n", text, maxsplit=1)[0]
    return " ".join(kept.split())[:WORDS_MAX]
