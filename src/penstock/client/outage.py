"""Which of many failures in a row are worth a line: the first at once, then ever fewer, and that it is over."""

from __future__ import annotations

import logging
from typing import Final, Self

from penstock.model.units import count, duration_text

FIRST_SILENCE_MS: Final = 5_000
SILENCE_MAX_MS: Final = 300_000

log = logging.getLogger("penstock.client")


class Lasting(str):
    """Words about an outage that is longer than a restart takes. Commands, which are quiet otherwise, tell these."""

    __slots__ = ()


def warn(words: str | None) -> None:
    """That something is over weighs as much as that it began: nobody shall go on looking for it."""
    if words is not None:
        log.warning("%s", words, extra={"lasting": isinstance(words, Lasting)})


class Outage:
    """What cannot be done for a while. `failed` and `over` answer what to write into the log, None for nothing."""

    __slots__ = ("_began_ms", "_failures", "_lasts", "_over", "_silence_ms", "_told_ms", "_what")

    def __init__(self, what: str, over: str) -> None:
        """`what` fails, and the words for its end: "cannot reach broker 1", "broker 1 answers again"."""
        self._what, self._over = what, over
        self._failures, self._lasts = 0, False
        self._began_ms = self._told_ms = self._silence_ms = 0.0

    @classmethod
    def of_broker(cls, node_id: int) -> Self:
        return cls(f"cannot reach broker {node_id}", f"broker {node_id} answers again")

    @classmethod
    def of_cluster(cls) -> Self:
        return cls("no broker answers", "brokers answer again")

    def failed(self, now_ms: float, why: object) -> str | None:
        """It was tried once more, in vain."""
        self._failures += 1
        if self._failures == 1:
            self._began_ms = self._told_ms = now_ms
            self._silence_ms, self._lasts = FIRST_SILENCE_MS, False
            return f"{self._what}: {why}; trying on"
        if now_ms - self._told_ms < self._silence_ms:
            return None
        self._told_ms, self._lasts = now_ms, True
        self._silence_ms = min(2 * self._silence_ms, SILENCE_MAX_MS)
        lasted = duration_text(now_ms - self._began_ms)
        return Lasting(f"{self._what} for {lasted}, {count('try', self._failures)}: {why}")

    def over(self, now_ms: float) -> str | None:
        """It succeeded."""
        if not self._failures:
            return None
        self._failures = 0
        words = f"{self._over}, after {duration_text(now_ms - self._began_ms)}"
        return Lasting(words) if self._lasts else words
