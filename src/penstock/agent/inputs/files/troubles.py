"""What is wrong, told once: in the log, in the count and in the status, until it is something else."""

from __future__ import annotations

import logging
from typing import Final

TOLD_MAX: Final = 1000

_log = logging.getLogger("penstock.agent")


class Troubles:
    """Of one input. A subject is a path, or a thing such as the checkpoints."""

    def __init__(self, input: str) -> None:
        self._input = input
        self._told: dict[str, str] = {}
        self.count = 0
        self.last = ""

    def tell(self, subject: str, words: str) -> None:
        """Again only when the words are others, or it was well in between."""
        if self._told.get(subject) == words:
            return
        if len(self._told) >= TOLD_MAX:
            self._told.pop(next(iter(self._told)))
        self._told[subject] = words
        self.count += 1
        self.last = f"{subject}: {words}" if subject else words
        _log.warning("input %s: %s", self._input, self.last)

    def well(self, subject: str) -> None:
        if self._told and self._told.pop(subject, None) is not None:
            _log.info("input %s: %s: well again", self._input, subject)

    def about(self, subject: str) -> str:
        return self._told.get(subject, "")


def in_words(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
