"""Errors that users must see: logged, kept as the last one, and not repeated every second."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from penstock.agent.environment import monotonic_ms, now_ms

log = logging.getLogger("penstock.agent")

REPEAT_AFTER_MS: Final = 30_000
_REMEMBERED_MAX: Final = 256


class Teller:
    """Says each thing once, and again when it still holds after a while."""

    def __init__(self, clock_ms: Callable[[], float] = monotonic_ms) -> None:
        self._clock_ms = clock_ms
        self._said_ms: dict[str, float] = {}
        self.last_error = ""
        self.last_error_at_ms = 0

    def wrong(self, words: str, about: str = "") -> None:
        """`about` is what repetitions are known by, for words that differ each time."""
        self.last_error, self.last_error_at_ms = words, now_ms()
        if self._due(about or words):
            log.error("%s", words)

    def _due(self, about: str) -> bool:
        now = self._clock_ms()
        said = self._said_ms.get(about)
        if said is not None and now - said < REPEAT_AFTER_MS:
            return False
        if len(self._said_ms) >= _REMEMBERED_MAX:
            self._said_ms.clear()
        self._said_ms[about] = now
        return True
