"""What an append gives."""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.ids import Offset


class Ticket(NamedTuple):
    """Offsets [base, end) are assigned to what was appended; it is readable once `written` reaches `end`.

    `timestamp` is the largest one of the batch, so that a duplicate can be answered as the original was.
    """

    base: Offset
    end: Offset
    timestamp: int = -1
