"""Complaints that are made once: the second time in the same process they would only be noise."""

from __future__ import annotations

import logging

log = logging.getLogger("penstock.spark.progress")

_MADE_MAX = 1_000
_made: set[tuple[str, ...]] = set()


def warn_once(*about: str, words: str) -> bool:
    """Warns unless this process already has about the same thing; answers whether it did."""
    if about in _made:
        return False
    if len(_made) >= _MADE_MAX:
        _made.clear()
    _made.add(about)
    log.warning(words)
    return True


def forget(*about: str) -> None:
    """What went well again may be complained about again."""
    _made.discard(about)


def reason(failure: BaseException) -> str:
    """What an exception says, or what it is when it says nothing, as timeouts do."""
    return str(failure) or type(failure).__name__
