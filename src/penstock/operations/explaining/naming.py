"""Lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_SHOWN: Final = 3


def listed(names: Sequence[str]) -> str:
    """The first few of them, and how many there are besides."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
