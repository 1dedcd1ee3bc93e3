"""A log file as logrotate keeps it: renamed and made anew, the one before the last compressed, the oldest removed."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import Final

KEPT: Final = 30
"""Old files beside the one that is written."""


class RotatingLog:
    """`access.log`, `access.log.1`, `access.log.2.gz` … Only whole lines are in a file when it is rotated."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("ab")
        self.rotations = 0

    def write(self, lines: bytes) -> None:
        """Returns when the lines are the system's, where everybody sees them."""
        self._file.write(lines)
        self._file.flush()

    def rotate(self) -> None:
        """Rename and create: whoever has the old file open goes on reading it."""
        oldest = self._old(KEPT)
        oldest.unlink(missing_ok=True)
        for number in range(KEPT - 1, 1, -1):
            if self._old(number).exists():
                self._old(number).rename(self._old(number + 1))
        if self._first().exists():
            self._compress(self._first(), self._old(2))
        self._path.rename(self._first())
        self._file.close()
        self._file = self._path.open("ab")
        self.rotations += 1

    def close(self) -> None:
        self._file.close()

    def _first(self) -> Path:
        return self._path.with_name(f"{self._path.name}.1")

    def _old(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}.gz")

    def _compress(self, plain: Path, packed: Path) -> None:
        # Under a name that nobody follows until it is whole.
        beside = packed.with_name(f".{packed.name}.tmp")
        with plain.open("rb") as source, gzip.open(beside, "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target)
        os.replace(beside, packed)
        plain.unlink()
