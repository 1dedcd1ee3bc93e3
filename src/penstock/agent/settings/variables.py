"""`${NAME}` and `${NAME:-default}` in texts: files of agents are rolled out to many machines. Pure.

Every text of the file may hold variables, keys may not. `$${` is a `${` that is meant as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.declared.fields import Notes
from penstock.declared.mistakes import did_you_mean
from penstock.declared.positions import Path

_VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def filled_in(value: Any, environ: Mapping[str, str], notes: Notes, path: Path = ()) -> Any:
    """The same with its variables replaced; those that are not set are noted and become empty."""
    if isinstance(value, str):
        return _text(value, environ, notes, path) if "${" in value else value
    if isinstance(value, Mapping):
        return {key: filled_in(each, environ, notes, (*path, key)) for key, each in value.items()}
    if isinstance(value, list):
        return [filled_in(each, environ, notes, (*path, index)) for index, each in enumerate(value)]
    return value


def _text(text: str, environ: Mapping[str, str], notes: Notes, path: Path) -> str:
    def wrong(at: int, words: str) -> str:
        notes.wrong_at(notes.positions.inside(path, text, at), words)
        return ""

    def fill(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        if found[1] is None:
            return wrong(found.start(), "${ is never closed; write $${ if it is no variable")
        name, has_default, default = found[1].partition(":-")
        if not _NAME.fullmatch(name):
            return wrong(found.start(), f"{found[0]} is no variable: write ${{NAME}} or ${{NAME:-default}}")
        value = environ.get(name)
        if has_default:
            return value or default
        if value is None:
            near = did_you_mean(name, environ) if len(environ) > 12 else ""
            return wrong(found.start(), f"the environment has no {name}{near}; ${{{name}:-…}} gives it a default")
        return value

    return _VARIABLE.sub(fill, text)
