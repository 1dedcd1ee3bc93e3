"""Which kinds of input there are, and where they live. A kind is imported when a file names it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, cast

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel, Input
from penstock.declared.fields import Table

_INPUTS: Final = "penstock.agent.inputs"

KINDS: Final[dict[str, str]] = {
    "tail": f"{_INPUTS}.tail.kind",
    "spooldir": f"{_INPUTS}.spooldir.kind",
    "syslog": f"{_INPUTS}.syslog.kind",
    "http": f"{_INPUTS}.http.kind",
    "tcp": f"{_INPUTS}.tcp.kind",
    "stdin": f"{_INPUTS}.process.kind",
    "exec": f"{_INPUTS}.process.kind",
    "postgres": f"{_INPUTS}.postgres.kind",
}

SPOOLED: Final = frozenset({"syslog", "http", "tcp"})
"""Their senders cannot wait for long: these use the spool. Files, pipes and processes wait by themselves."""

LOSSY: Final[dict[str, str]] = {
    "stdin": "what was read from the pipe and the brokers had not yet acknowledged is gone when the agent is killed",
    "exec": "what the command printed and the brokers had not yet acknowledged is gone when the agent is killed",
}
"""Kinds that cannot promise at-least-once, and why."""


class Kind(Protocol):
    """What the module of a kind offers."""

    read: Callable[[Table, Path], Any]
    make: Callable[[Any, Channel, Environment], Input]


def kind_of(name: str) -> Kind:
    """The module behind the type of an input."""
    return cast(Kind, import_module(KINDS[name]))
