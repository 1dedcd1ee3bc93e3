"""What became of a thread's time: it ran, it waited for a processor, or the host of this machine kept one from it."""

from __future__ import annotations

import os
import threading
import time
from typing import Final, NamedTuple

_STEAL_FIELD: Final = 8
_LINE_BYTES: Final = 256
_STEAL_EVERY_S: Final = 1.0
"""The line of /proc/stat is dear to make, so it is made anew only so often, or when somebody wants to know."""


class Account(NamedTuple):
    """Milliseconds: of a thread, running and in the queue of a processor; of all processors, taken by the host."""

    ran_ms: float
    queued_ms: float
    stolen_ms: float

    def since(self, before: Account) -> Account:
        return Account(*(now - then for now, then in zip(self, before, strict=True)))

    def denied_ms(self, late_ms: float) -> float:
        """How much of a delay was for want of a processor. What the host took may have been another thread's."""
        queued_ms = min(self.queued_ms, late_ms)
        return queued_ms + min(self.stolen_ms, max(0.0, late_ms - queued_ms - self.ran_ms))


class ProcessorTime:
    """The account of the thread that makes it. Where the system keeps none, a thread always had its processor."""

    __slots__ = ("_schedstat", "_stat", "_steal_at_s", "_stolen_ms", "_tick_ms")

    def __init__(self) -> None:
        self._schedstat = _opened(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._stat = _opened("/proc/stat")
        self._tick_ms = 1_000 / os.sysconf("SC_CLK_TCK")
        self._steal_at_s, self._stolen_ms = 0.0, 0.0

    def account(self, *, now: bool = False) -> Account:
        """Up to this moment; without `now` what the host took may be a second old."""
        return Account(time.thread_time() * 1_000, self._queued_ms(), self._stolen(now))

    def close(self) -> None:
        for descriptor in (self._schedstat, self._stat):
            if descriptor is not None:
                os.close(descriptor)
        self._schedstat = self._stat = None

    def _queued_ms(self) -> float:
        words = _words(self._schedstat)  # nanoseconds that it ran, nanoseconds that it was queued, times that it ran
        return int(words[1]) / 1e6 if len(words) > 1 else 0.0

    def _stolen(self, now: bool) -> float:
        at_s = time.monotonic()
        if now or at_s - self._steal_at_s >= _STEAL_EVERY_S:
            words = _words(self._stat)
            self._steal_at_s = at_s
            self._stolen_ms = int(words[_STEAL_FIELD]) * self._tick_ms if len(words) > _STEAL_FIELD else 0.0
        return self._stolen_ms


def _opened(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _words(descriptor: int | None) -> list[bytes]:
    try:
        return os.pread(descriptor, _LINE_BYTES, 0).split() if descriptor is not None else []
    except OSError:
        return []
