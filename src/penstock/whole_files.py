"""Small files that others read at any moment: whole or not at all.

For what commands, agents and pipelines leave for each other. It is not synced: after a power cut it may be the file
before, or none, and nobody that it speaks of lives on. What must outlast a power cut is written by `storage.files`,
and keys by `certificates.files`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

OWNERS_ALONE: Final = 0o600
_ANYBODYS: Final = 0o666


def write_whole(path: Path, text: str, *, mode: int = _ANYBODYS) -> None:
    """Puts a file in its place in one step; `mode` as the umask leaves it. Its directory exists."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
