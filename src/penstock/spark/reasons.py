"""Why a query failed, as a sentence for people, and whether trying again could help. Pure.

Spark wraps what happened into texts of thousands of characters: its own condition, then a Python traceback, then the
query, its plan and a Java one. What matters is the last line of the traceback, or the innermost condition:

    [STREAM_FAILED] Query [id = …] terminated with exception: [PYTHON_EXCEPTION] … Traceback (most recent call last):
      File "/home/ann/steps.py", line 7, in price
    KeyError: 'amount'
     SQLSTATE: 38000 SQLSTATE: XXKST
    === Streaming Query ===
    …

A batch that fails is played again with the very same rows. So whatever is wrong with the query, its rows or its
checkpoint will be wrong again; what is wrong with the world (brokers, disks, other processes) may heal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from penstock.spark.errors import SparkRoomError

WORDS_MAX: Final = 2_000

_LOST: Final = frozenset({"DataLost", "TopicLost"})
"""Of ours: records that were to be read are gone."""
_HOPELESS: Final = _LOST | {
    "BadOption",
    "CannotEvolve",
    "CheckpointTaken",
    "CommitRefused",
    "LedgerFull",
    "LedgerUnfit",
    "LedgerVanished",
    "NotUnderstood",
    "PutsOverwrite",
    "Replaced",
    "RuleBroken",
    "Torn",
    "Undecodable",
    "Unreadable",
}
"""Of ours: what stays wrong until somebody does something. A broker or a topic that is missing may come back."""
_RESETTING: Final = frozenset({"CommitRefused", "LedgerVanished", "TopicLost"})
"""Of ours: what a query without its checkpoint does not meet, nor one that goes on where its table stands."""
_MISTAKES: Final = frozenset(
    {
        "AnalysisException",
        "AttributeError",
        "ImportError",
        "IndentationError",
        "ModuleNotFoundError",
        "NameError",
        "NotImplementedError",
        "ParseException",
        "SyntaxError",
        "TypeError",
        "UnboundLocalError",
        "ZeroDivisionError",
    }
)
"""Of Python: what is wrong with the code of a step, not with what it found."""

_HOPELESS_STATES: Final = ("0A", "21", "22", "42", "P0")
"""Classes of SQLSTATE: what is not supported; a row too many; data that cannot be; names, types, syntax, rights; what
the query itself raises, such as a row that breaks a rule."""
_CHECKPOINT: Final = re.compile(
    r"sources in the checkpoint offsets|Failed to read log file|Incomplete log file"
    r"|Checksum error: \S*/(?:metadata|offsets|commits|state)"
    r"|\[(?:CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED|INVALID_LOG_VERSION|STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
    r"|STREAMING_STATEFUL_OPERATOR_[A-Z_]+|STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
    r"|STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMPATIBLE|STATE_STORE_(?:KEY|VALUE)_ROW_FORMAT_VALIDATION_FAILURE"
    r"|STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE"
    r"|STATE_STORE_INVALID_(?:CONFIG_AFTER_RESTART|VALUE_SCHEMA_EVOLUTION|VARIABLE_TYPE_CHANGE)"
    r"|CANNOT_LOAD_STATE_STORE\.CANNOT_(?:FIND_BASE_SNAPSHOT_CHECKPOINT|READ_DELTA_FILE_NOT_EXISTS"
    r"|READ_MISSING_SNAPSHOT_FILE))[\].]"
)
"""What is wrong between a query and its checkpoint: steps that were changed since, files that are torn or gone."""

_CHANGED: Final = re.compile(
    r"sources in the checkpoint offsets"
    r"|\[(?:STREAMING_STATEFUL_OPERATOR_[A-Z_]*MATCH[A-Z_]*|STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMPATIBLE"
    r"|STATE_STORE_(?:KEY|VALUE)_(?:ROW_FORMAT_VALIDATION_FAILURE|SCHEMA_NOT_COMPATIBLE)"
    r"|STATE_STORE_INVALID_(?:CONFIG_AFTER_RESTART|VALUE_SCHEMA_EVOLUTION|VARIABLE_TYPE_CHANGE))[\].]"
)
"""Of these, what says that steps were changed; torn files say no such thing."""

_TRACEBACK: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)', re.MULTILINE)
_OTHERS: Final = ("/site-packages/", "/dist-packages/", "/penstock/", "<frozen ", "/lib/python3")
_RAISED: Final = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)(?:: (?P<words>.*))?$", re.DOTALL)
_CAUSED: Final = re.compile(r"^(?:Caused by|): (?:[\w$]+\.)*(\w+: .*)$", re.MULTILINE)
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]")
_STATE: Final = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")
_FAILED: Final = re.compile(r"^.*?\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ", re.DOTALL)
_AFTER: Final = re.compile(
    r"\n(?:=== Streaming Query|== SQL|JVM stacktrace|\s*at |The above exception|During handling)|;\n", re.DOTALL
)
_SPARK_SAYS: Final = {
    "STREAMING_OUTPUT_MODE": (
        'the rows are aggregates that may still change: say mode = "update" (a row at each change) or "complete" in '
        "the sink, or give the source a watermark and group by a window of its column"
    ),
    "TABLE_OR_VIEW_NOT_FOUND": "the SQL reads a name that is neither a source nor a step",
    "UNRESOLVED_COLUMN": "the SQL names a column that its input has not",
    "PARSE_": "the SQL is no SQL",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """`hopeless` means that another try would end the same way; `reset`, that a query without its checkpoint runs;
    `lost`, that one that is told to put up with lost records does; `changed`, that the query is not the one that its
    checkpoint was made by."""

    words: str
    hopeless: bool
    reset: bool = False
    lost: bool = False
    changed: bool = False


def reason_of(failure: BaseException) -> Reason:
    """What to tell of an exception that building, starting or running a query raised."""
    kind = type(failure).__name__
    if isinstance(failure, SparkRoomError):
        return _ours(kind, str(failure))
    found = reason_in(str(failure), planned=kind in ("AnalysisException", "ParseException"))
    if found is not None:
        return found
    text = _first(str(failure))
    return Reason(_cut(f"{kind}: {text}" if text else kind), kind in _MISTAKES)


def reason_in(text: str, *, planned: bool = False) -> Reason | None:
    """What a text of Spark's tells; None when it is nobody's that is known.

    `planned` says that a query could not even be planned: then whatever is wrong is wrong with it.
    """
    told = _FAILED.sub("", text.strip(), count=1)
    if not planned and _TRACEBACK in told:
        return _raised(told)
    if told.startswith("An error occurred while calling"):
        return _java(told)
    if _CHECKPOINT.search(told):
        return _checkpoint(told)
    condition = _CONDITION.match(told)
    if condition is None:
        return Reason(_cut(_first(told)), False) if told != text.strip() else None
    return _spark(told, condition[1], planned)


def _raised(told: str) -> Reason:
    """The last line of the last traceback."""
    trace = told.rpartition(_TRACEBACK)[2]
    lines = trace.splitlines()
    at = next((number for number, line in enumerate(lines) if line and not line[0].isspace()), None)
    if at is None:
        return Reason(_cut(_first(told)), False)
    raised = _RAISED.match(_whole("\n".join(lines[at:])))
    if raised is None:
        return Reason(_cut(_first("\n".join(lines[at:]))), False)
    name, words = raised["name"].rpartition(".")[2], raised["words"] or ""
    if raised["name"].startswith("penstock."):
        return _ours(name, words)
    if name == "Py4JJavaError":
        # Python called Java, and what went wrong went wrong there.
        return _java("\n".join(lines[at:]))
    if name in ("AnalysisException", "ParseException"):
        return reason_in(words, planned=True) or Reason(_cut(words), True)
    return Reason(_cut(f"{name}: {words}" if words else name) + _place(trace), name in _MISTAKES)


def _ours(name: str, words: str) -> Reason:
    return Reason(_cut(" ".join(words.split())), name in _HOPELESS, name in _RESETTING, name in _LOST)


def _java(told: str) -> Reason:
    """The innermost cause of a Java trace."""
    causes = _CAUSED.findall(told)
    words = _cut(causes[-1] if causes else _first(told))
    return _checkpoint(words) if _CHECKPOINT.search(told) else Reason(words, False)


def _checkpoint(told: str) -> Reason:
    return Reason(_cut(_first(told)), hopeless=True, reset=True, changed=_CHANGED.search(told) is not None)


def _spark(told: str, condition: str, planned: bool) -> Reason:
    """A condition of Spark's, by its class of SQLSTATE; that of the wrapping (XXKST) says nothing."""
    states = [state for state in _STATE.findall(told) if state != "XXKST"]
    hopeless = planned or any(state.startswith(_HOPELESS_STATES) for state in states[:1])
    hint = next((words for start, words in _SPARK_SAYS.items() if condition.startswith(start)), None)
    words = _cut(_first(told))
    return Reason(f"{hint} ({words})" if hint else words, hopeless)


def _place(trace: str) -> str:
    """Where in the user's own code it was, if there is any in the traceback."""
    frames = [each for each in _FRAME.finditer(trace) if not any(part in each["file"] for part in _OTHERS)]
    if not frames:
        return ""
    last = frames[-1]
    return f" ({last['file'].rpartition('/')[2]}, line {last['line']}, in {last['function']})"


def _whole(raised: str) -> str:
    """A message of several lines, without what Spark put after it."""
    kept = re.split(r"\s+SQLSTATE: |\n\s*\n|\n\s*at |\n=== |\n: ", raised, maxsplit=1)[0]
    return kept.partition(f"\n{_TRACEBACK}")[0].rstrip()


def _first(text: str) -> str:
    """The sentence before plans, stack traces and the SQL itself."""
    kept = _AFTER.split(text.strip(), maxsplit=1)[0]
    kept = re.sub(r"\s+SQLSTATE: XXKST$", "", kept)
    return " ".join(kept.split())


def _cut(words: str) -> str:
    plain = " ".join(words.split())
    return plain if len(plain) <= WORDS_MAX else f"{plain[:WORDS_MAX]} …"
