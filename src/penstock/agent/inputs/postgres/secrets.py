"""Settings that are not written in the file, but say where they are: `env:NAME`, `file:NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FILE_BYTES_MAX = 64 << 10


class WrongSecret(ValueError):
    """It is not where it should be, or does not say where."""


def place_of(text: str) -> tuple[str, str] | None:
    """`env` or `file`, and the name; None for a text that is meant as it stands."""
    kind, colon, name = text.partition(":")
    if not colon or kind not in ("env", "file"):
        return None
    if not name.strip():
        raise WrongSecret(f"{text!r} names nothing: write env:NAME or file:NAME")
    return kind, name


def resolved(text: str, folder: Path, environ: Mapping[str, str]) -> str:
    """What is meant, read now: a password that was changed is known at the next try."""
    place = place_of(text)
    if place is None:
        return text
    kind, name = place
    if kind == "env":
        found = environ.get(name, "").strip()
        if not found:
            raise WrongSecret(f"the environment has no {name}, which dsn = {text!r} names")
        return found
    try:
        with open(folder / name, encoding="utf-8") as file:
            found = file.read(FILE_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as wrong:
        raise WrongSecret(f"{folder / name}, which dsn names, cannot be read: {wrong}") from None
    if not found:
        raise WrongSecret(f"{folder / name}, which dsn names, is empty")
    return found
