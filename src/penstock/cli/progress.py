"""How many records and bytes went by, on a terminal's standard error and nowhere else."""

from __future__ import annotations

import sys
import time

_EVERY_S = 0.25


class Progress:
    """One line that is written over itself. Silent when standard error is no terminal."""

    def __init__(self, verb: str, *, wanted: bool = True) -> None:
        self._verb, self._shown = verb, wanted and sys.stderr.isatty()
        self._begun = self._last = time.monotonic()
        self.records = self.bytes = 0

    def add(self, records: int, size: int) -> None:
        self.records += records
        self.bytes += size
        if self._shown and time.monotonic() - self._last >= _EVERY_S:
            self._last = time.monotonic()
            took_s = max(self._last - self._begun, 1e-9)
            rate = f"{self.records / took_s:,.0f} records/s, {self.bytes / took_s / 1e6:,.1f} MB/s"
            sys.stderr.write(f"\r\x1b[K{self._verb} {self.records:,} records ({rate})")
            sys.stderr.flush()

    def close(self) -> None:
        """Takes the line away, so that what follows has the terminal for itself."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
