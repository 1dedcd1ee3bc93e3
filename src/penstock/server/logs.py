"""Logging for people and for machines: levels, text or JSON lines on stderr, and warnings that do not flood."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, TextIO

ROOT = "penstock"
LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 1,
}


class TextLines(logging.Formatter):
    """`2026-01-31 12:00:00.123 WARN server.connection: words`, local time."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        name = record.name.removeprefix(ROOT + ".")
        level = "WARN" if record.levelno == logging.WARNING else record.levelname
        line = f"{seconds}.{int(record.msecs):03} {level} {name}: {record.getMessage()}"
        trace = _trace_of(self, record)
        return f"{line}\n{trace}" if trace else line


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC, RFC 3339), level, logger, message, and trace if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{seconds}.{int(record.msecs):03}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        trace = _trace_of(self, record)
        if trace:
            line["trace"] = trace
        return json.dumps(line, ensure_ascii=False)


def configure(
    level: str = "INFO",
    *,
    form: str = "text",
    overrides: Mapping[str, str] | None = None,
    stream: TextIO | None = None,
) -> None:
    """Sends the package's logs to `stream` (stderr unless told). Called once by a process that owns its logging.

    `form` is "text" or "json". `overrides` gives loggers levels of their own, by name with or without `penstock.`.
    ValueError when a level or the form is unknown.
    """
    forms: dict[str, Callable[[], logging.Formatter]] = {"text": TextLines, "json": JsonLines}
    if form not in forms:
        raise ValueError(f"log format {form!r} is unknown; take text or json")
    root = logging.getLogger(ROOT)
    root.setLevel(level_of(level))
    root.propagate = False
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(forms[form]())
    root.handlers[:] = [handler]
    for name, own_level in (overrides or {}).items():
        full = name if name == ROOT or name.startswith(ROOT + ".") else f"{ROOT}.{name}"
        logging.getLogger(full).setLevel(level_of(own_level))


def level_of(name: str) -> int:
    try:
        return LEVELS[name.upper()]
    except KeyError:
        raise ValueError(f"log level {name!r} is unknown; take one of {', '.join(LEVELS)}") from None


KINDS_MAX: Final = 1_000
_OTHERS: Final = "others"


class Sparing:
    """Warnings of the same kind at most once per interval; the next one says how many were kept back.

    A peer that reconnects and misbehaves a thousand times a second must not fill the disk, and neither must a thousand
    peers that misbehave once: kinds name addresses; when `KINDS_MAX` of them are remembered, the others count as one.
    """

    __slots__ = ("_clock", "_forgot_at", "_interval_ms", "_kinds", "_logger")

    def __init__(
        self, logger: logging.Logger, *, interval_ms: float = 10_000.0, clock: Callable[[], float] | None = None
    ) -> None:
        self._logger = logger
        self._interval_ms = interval_ms
        self._clock = clock or (lambda: time.monotonic() * 1000.0)
        self._kinds: dict[str, tuple[float, int]] = {}
        self._forgot_at = float("-inf")

    def warning(self, kind: str, words: str, *args: object) -> None:
        now = self._clock()
        if kind not in self._kinds and len(self._kinds) >= KINDS_MAX:
            kind = self._room_for(kind, now)
        last, kept_back = self._kinds.get(kind, (float("-inf"), 0))
        if now - last < self._interval_ms:
            self._kinds[kind] = (last, kept_back + 1)
            return
        self._kinds[kind] = (now, 0)
        if kept_back:
            words, args = words + " (and %d like it since)", (*args, kept_back)
        self._logger.warning(words, *args)

    def _room_for(self, kind: str, now: float) -> str:
        """Forgets, once an interval, what was not met for one; when all of it is newer, `kind` is one of the others."""
        if now - self._forgot_at < self._interval_ms:
            return _OTHERS
        self._forgot_at = now
        self._kinds = {old: told for old, told in self._kinds.items() if now - told[0] < self._interval_ms}
        return kind if len(self._kinds) < KINDS_MAX else _OTHERS


def _trace_of(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    pieces = []
    if record.exc_info:
        pieces.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        pieces.append(record.stack_info)
    return "\n".join(pieces)
