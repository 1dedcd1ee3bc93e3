"""Log levels of this node as Kafka clients know them: TRACE, DEBUG, INFO, WARN, ERROR, FATAL; `root` is its root.

A BROKER_LOGGER resource is not cluster state: it is read and changed on the broker that is asked and forgotten when it
stops.
"""

from __future__ import annotations

import logging
from typing import Final

from penstock.model.errors import INVALID_CONFIG, INVALID_REQUEST, Refused

ROOT: Final = "root"
TRACE: Final = 5
_LEVELS: Final = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_OWN: Final = "penstock"


def levels() -> dict[str, str]:
    """The level in force of the node's root logger and of every logger below it, by name."""
    names = sorted(name for name in logging.root.manager.loggerDict if name.startswith(f"{_OWN}."))
    return {name: _text(_logger(name).getEffectiveLevel()) for name in (ROOT, *names)}


def _logger(name: str) -> logging.Logger:
    """An embedded node leaves the logging of the program around it alone, so its root is not Python's."""
    return logging.getLogger(_OWN if name == ROOT else name)


def check_level(name: str, level: str | None) -> None:
    """Refused unless the logger can be set to `level`; None takes its own level away."""
    if name not in levels():
        raise Refused(INVALID_CONFIG, f"Logger {name} does not exist!")
    if level is None:
        if name == ROOT:
            raise Refused(INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    elif level.upper() not in _LEVELS:
        allowed = ", ".join(sorted(_LEVELS))
        raise Refused(
            INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {allowed}",
        )


def set_level(name: str, level: str | None) -> None:
    """Sets a level that `check_level` has let through."""
    _logger(name).setLevel(logging.NOTSET if level is None else _LEVELS[level.upper()])


def _text(level: int) -> str:
    """The highest of Kafka's levels that lets through what `level` does."""
    return next((name for name, number in _LEVELS.items() if number >= level), "FATAL")
