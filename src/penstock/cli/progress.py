"""What goes on, on a terminal's standard error and nowhere else: how many records went by, how much time is left."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.cli.output import terminal_columns
from penstock.model.units import count

_EVERY_S = 0.25
_BAR = 24
_BAR_SHARE = 4
_COLUMNS = 80
"""Of a terminal that does not tell."""


def bar(share: float, cells_max: int, columns: int) -> str:
    """How much is done, in so many cells, or fewer where the line is short."""
    cells = min(cells_max, columns // _BAR_SHARE)
    filled = min(cells, int(share * cells))
    return "#" * filled + "." * (cells - filled)


def one_line(words: str, columns: int) -> str:
    """What fits into a line that shall be written over: behind its last column a terminal begins another."""
    return words if len(words) < columns else f"{words[: columns - 2]}…"


def columns_of_stderr() -> int:
    return terminal_columns(sys.stderr) or _COLUMNS


def overwrite(words: str) -> None:
    """Writes a line of standard error anew."""
    sys.stderr.write(f"\r\x1b[K{one_line(words, columns_of_stderr())}")
    sys.stderr.flush()


@contextmanager
def ticking(words: str, terminal: int | None) -> Iterator[None]:
    """What goes on, and for how many seconds, as a line that is written over itself; taken away in the end.

    `terminal` is a file descriptor that is ours to close, None when there is nobody to tell: standard error itself may
    be led elsewhere meanwhile, and whatever goes on may hold the thread that waits for it.
    """
    if terminal is None:
        yield
        return
    over, begun_s, columns = threading.Event(), time.monotonic(), columns_of_stderr()

    def tick() -> None:
        while not over.is_set():
            line = one_line(f"{words} … {time.monotonic() - begun_s:.0f} s", columns)
            os.write(terminal, f"\r\x1b[K{line}".encode())
            over.wait(1.0)

    teller = threading.Thread(target=tick, name="penstock-ticking", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
        os.write(terminal, b"\r\x1b[K")
        os.close(terminal)


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
            overwrite(f"{self._verb} {count('record', self.records, grouped=True)} ({rate})")

    def close(self) -> None:
        """Takes the line away, so that what follows has the terminal for itself."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class Countdown:
    """What goes on and how much of its time is over, as a bar that is written over itself."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._words, self._seconds, self._begun = "", 0.0, time.monotonic()

    def begin(self, words: str, seconds: float) -> None:
        """Something that takes so long, or 0 when nobody knows."""
        self._words, self._seconds, self._begun = words, seconds, time.monotonic()
        self._draw()

    async def show(self) -> None:
        """Keeps the bar moving until it is cancelled."""
        while self._shown:
            self._draw()
            await asyncio.sleep(_EVERY_S)

    def _draw(self) -> None:
        if not self._shown:
            return
        passed_s = time.monotonic() - self._begun
        drawn = f" [{bar(passed_s / self._seconds, _BAR, columns_of_stderr())}]" if self._seconds else ""
        overwrite(f"{self._words}{drawn} {passed_s:.0f} s")

    def close(self) -> None:
        """Takes the line away, so that what follows has the terminal for itself."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
