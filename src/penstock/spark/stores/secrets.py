"""Values that are elsewhere: `env:NAME` in the environment, `file:PATH` in a file. No message ever has a value."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Final

from penstock.spark.errors import BadOption

ENVIRONMENT: Final = "env:"
FILE: Final = "file:"
FILE_BYTES_MAX: Final = 1 << 16


def is_reference(value: str) -> bool:
    return any(value.startswith(prefix) and len(value) > len(prefix) for prefix in (ENVIRONMENT, FILE))


def check_references(given: Mapping[str, str], secret: Collection[str], title: str) -> None:
    """Secrets have to be elsewhere: options are shown in plans and logs, and files of pipelines are shared. Pure."""
    for name, value in given.items():
        if name in secret and not is_reference(value):
            raise BadOption(
                f"{title}.{name} is a secret and has to be elsewhere: give env:NAME, a variable of the driver, or "
                "file:PATH, a file that it reads"
            )


def resolved(given: Mapping[str, str], title: str) -> dict[str, str]:
    """What the references stand for, here and now: keys that are renewed in their file are taken up as they are."""
    return {name: _resolved(f"{title}.{name}", value) for name, value in given.items()}


def _resolved(name: str, value: str) -> str:
    if value.startswith(ENVIRONMENT):
        variable = value.removeprefix(ENVIRONMENT)
        found = os.environ.get(variable, "")
        if not found:
            raise BadOption(f"{name} is in {variable}, and no such variable is set where this runs: export it there")
        return found
    if value.startswith(FILE):
        return _text_of(name, value.removeprefix(FILE))
    return value


def _text_of(name: str, path: str) -> str:
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except (OSError, UnicodeDecodeError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else "it is no text"
        raise BadOption(f"{name} is in {path}, which cannot be read here: {why}") from None
    if not text.strip() or len(text) > FILE_BYTES_MAX:
        raise BadOption(f"{name} is in {path}, which has {'nothing' if not text.strip() else 'too much'} in it")
    return text.strip()
