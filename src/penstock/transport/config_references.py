"""`${file:…}`, `${dir:…}` and `${env:…}` in the files of clients and nodes, resolved from the disk and the environment.

Only files that a process reads for itself come here. What arrives over the wire is never resolved
(`security/references.py` says why).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from penstock.security.references import providers_of, resolve

FILE_BYTES_MAX: Final = 1 << 20


def resolved(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with what their references stand for. `Unresolved` names the property, never a value."""
    return resolve(properties, providers_of(properties), Disk())


class Disk:
    """Where references lead."""

    def file(self, path: str) -> str:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise ValueError(f"it has more than {FILE_BYTES_MAX >> 20} MB")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ValueError("it is no text in UTF-8") from None

    def environment(self, name: str) -> str | None:
        return os.environ.get(name)
