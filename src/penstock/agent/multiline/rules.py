"""Which line belongs to the one before it. A rule sees the lines of one file in order. Pure."""

from __future__ import annotations

import re
from typing import Final, Protocol

MODES: Final = ("continue_through", "continue_past", "halt_before", "halt_with")
PRESETS: Final = ("python", "java", "go")


class Pattern(Protocol):
    """A compiled pattern over bytes."""

    def search(self, text: bytes, /) -> object | None: ...


class Rule(Protocol):
    """Asked once for each line, in order."""

    def joins(self, line: bytes) -> bool:
        """Whether the line goes on with the event before it. When it does not, it begins an event."""

    def complete(self) -> bool:
        """Whether nothing can follow any more, so that the event need not wait for the next line."""

    def reset(self) -> None:
        """The event was handed on without waiting; the next line begins another."""


class _ByPatterns:
    """What the four modes share: two patterns, and whether an event is open to further lines."""

    def __init__(self, start: Pattern, condition: Pattern) -> None:
        self._start, self._condition = start, condition
        self._open = False

    def complete(self) -> bool:
        return not self._open

    def reset(self) -> None:
        self._open = False


class ContinueThrough(_ByPatterns):
    """After a line that matches `start`, all that follow and match `condition`."""

    def joins(self, line: bytes) -> bool:
        if self._open and self._condition.search(line):
            return True
        self._open = self._start.search(line) is not None
        return False


class ContinuePast(_ByPatterns):
    """After a line that matches `start`, all that match `condition` and the one that follows them.

    A line break that is written as a backslash at the end is the usual case.
    """

    def joins(self, line: bytes) -> bool:
        if self._open:
            self._open = self._condition.search(line) is not None
            return True
        self._open = self._start.search(line) is not None and self._condition.search(line) is not None
        return False


class HaltBefore(_ByPatterns):
    """After a line that matches `start`, all that do not match `condition`."""

    def joins(self, line: bytes) -> bool:
        if self._open and not self._condition.search(line):
            return True
        self._open = self._start.search(line) is not None
        return False


class HaltWith(_ByPatterns):
    """After a line that matches `start`, all up to and with the first that matches `condition`."""

    def joins(self, line: bytes) -> bool:
        if self._open:
            self._open = self._condition.search(line) is None
            return True
        self._open = self._start.search(line) is not None and self._condition.search(line) is None
        return False


_TRACEBACK = re.compile(rb"^\s*(?:\+ )?(?:Exception Group )?Traceback \(most recent call last\):")
_RAISED = re.compile(rb"^[A-Za-z_][\w.]*(?:: |:?$)")
_CHAINED = re.compile(rb"^(?:During handling of the above exception|The above exception was the direct cause)")


class PythonTraces:
    """A traceback belongs to the line that was logged before it, and ends with the line that names the exception."""

    _OUTSIDE, _FRAMES, _RAISED_LINE = range(3)

    def __init__(self) -> None:
        self._state = self._OUTSIDE

    def joins(self, line: bytes) -> bool:
        if _TRACEBACK.match(line):
            self._state = self._FRAMES
            return True
        match self._state:
            case self._FRAMES:
                if line[:1] in (b" ", b"\t") or not line:
                    return True
                if _RAISED.match(line):
                    self._state = self._RAISED_LINE
                    return True
            case self._RAISED_LINE:
                # Between the parts of a chain there are empty lines, and words that say how they belong together.
                if not line or _CHAINED.match(line) or line[:1] in (b" ", b"\t"):
                    return True
        self._state = self._OUTSIDE
        return False

    def complete(self) -> bool:
        # The line that is logged before a traceback looks like any other.
        return False

    def reset(self) -> None:
        self._state = self._OUTSIDE


ANY: Final = re.compile(rb"")
JAVA_CONDITION: Final = re.compile(
    rb"^(?:\s+at\s|\s+\.\.\. \d+ |\s*Caused by: |\s*Suppressed: |\s*Wrapped by: "
    rb"|(?:[A-Za-z_$][\w$]*\.)+[\w$]*(?:Exception|Error|Throwable)\b)"
)
GO_START: Final = re.compile(rb"(?:^|\s)(?:panic: |fatal error: |http: panic serving )")
GO_CONDITION: Final = re.compile(
    rb"^(?:$|\s|goroutine \d+ \[|created by |panic: |\[signal |exit status \d+$|\[recovered|[\w./\-*()\[\]{}$]+\(.*\)$)"
)


def preset(name: str) -> Rule:
    match name:
        case "python":
            return PythonTraces()
        case "java":
            return ContinueThrough(ANY, JAVA_CONDITION)
    assert name == "go", "presets are checked when they are read"
    return ContinueThrough(GO_START, GO_CONDITION)


def by_mode(mode: str, start: Pattern, condition: Pattern) -> Rule:
    match mode:
        case "continue_through":
            return ContinueThrough(start, condition)
        case "continue_past":
            return ContinuePast(start, condition)
        case "halt_before":
            return HaltBefore(start, condition)
    assert mode == "halt_with", "modes are checked when they are read"
    return HaltWith(start, condition)
