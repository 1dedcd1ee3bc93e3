"""What is loaded to stay: the garbage collector need not walk it again and again.

A collection that looks at a hundred thousand objects holds the loop up for as long as twenty slices of loading. Only a
process that is a node and nothing else lets its collector forget objects (`running.py`); in anybody else's process
nothing happens here.
"""

from __future__ import annotations

import gc
from typing import Final

RECORDS_MAX: Final = 10_000
"""Collections are quick up to about so many objects that are new. For fewer of them nothing is set aside: among what is
alive at that moment may be something that only the collector can free later."""


class Lasting:
    """Counts what was loaded, and sets it aside now and then."""

    __slots__ = ("_on", "_records")

    def __init__(self) -> None:
        self._on = False
        self._records = 0

    def begin(self) -> None:
        """This process is a node's own."""
        self._on, self._records = True, 0

    def loaded(self, records: int) -> None:
        """So many records have become state that stays."""
        if not self._on:
            return
        self._records += records
        if self._records >= RECORDS_MAX:
            self._records = 0
            gc.freeze()


LASTING: Final = Lasting()
"""The one of this process, as there is one collector."""
