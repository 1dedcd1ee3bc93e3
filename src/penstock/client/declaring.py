"""How settings are declared: a field with its Kafka name, a sentence, and a check that reads what was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, field
from typing import Any, TypeAlias

from penstock.model.secret import Secret

INT32_MAX = 0x7FFFFFFF

Check: TypeAlias = Callable[[Any], Any]
"""Turns what was given into the value, or raises ValueError with what was expected."""


def setting(default: Any, check: Check, says: str, kafka: str = "", also: Sequence[str] = ()) -> Any:
    """A field. `kafka` is the property's name there if it is not ours with dots, `-` when Kafka has none."""
    metadata = {"check": check, "says": says, "kafka": kafka, "also": tuple(also)}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def number(low: float, high: float = INT32_MAX) -> Check:
    def check(given: Any) -> int:
        if isinstance(given, str) and given.strip().lstrip("-").isdigit():
            given = int(given)
        if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return given

    return check


def flag(given: Any) -> bool:
    if isinstance(given, str) and given.lower() in ("true", "false"):
        return given.lower() == "true"
    if not isinstance(given, bool):
        raise ValueError("True or False")
    return given


def text(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ValueError("text that is not empty")
    return given


def optional_text(given: Any) -> str | None:
    return None if given is None else text(given)


def any_text(given: Any) -> str:
    if not isinstance(given, str):
        raise ValueError("text")
    return given


def one_of(*choices: str) -> Check:
    def check(given: Any) -> str:
        if not isinstance(given, str) or given.lower() not in choices:
            raise ValueError(" or ".join(repr(choice) for choice in choices))
        return given.lower()

    return check


def addresses(given: Any) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise ValueError("'host:port,host:port' or a list of 'host:port'")
    found = tuple(part.strip() for part in parts if part.strip())
    if not found:
        raise ValueError("at least one address")
    return found


def names(given: Any) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or not parts or not all(isinstance(part, str) and part for part in parts):
        raise ValueError("a list of names")
    return tuple(part.strip() for part in parts)


def secret(given: Any) -> Secret | None:
    if given is None or isinstance(given, Secret):
        return given
    if not isinstance(given, str):
        raise ValueError("text, which is never shown")
    return Secret(given)
