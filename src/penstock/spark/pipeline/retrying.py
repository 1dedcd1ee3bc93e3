"""How long to wait before something that failed is tried again, and when to give up. Pure: time comes in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Patience:
    """`tries` failures in a row are the last; what ran for `forgive_s` begins to count anew."""

    first_s: float = 1.0
    most_s: float = 60.0
    tries: int = 30
    forgive_s: float = 300.0


SINKS: Final = Patience()
"""Waits of 1, 2, 4 … 60 s: a broker or a disk has half an hour to come back."""

ONCE: Final = Patience(tries=5)
"""Somebody waits for it to end."""

DRIVERS: Final = Patience(tries=6)


@dataclass(frozen=True, slots=True)
class Tries:
    """What one thing has failed so far."""

    failed: int = 0
    since_s: float = 0.0
    """When it was started last."""

    def started(self, now_s: float) -> Tries:
        return replace(self, since_s=now_s)

    def went_well(self) -> Tries:
        """It did what it is for: what comes is a new trouble."""
        return replace(self, failed=0)

    def after_failure(self, now_s: float, patience: Patience) -> tuple[Tries, float | None]:
        """Counts a failure; gives how long to wait before the next try, or None when there is to be none."""
        ran_s = now_s - self.since_s
        failed = 1 if ran_s >= patience.forgive_s else self.failed + 1
        wait_s = None if failed >= patience.tries else min(patience.first_s * 2 ** (failed - 1), patience.most_s)
        return replace(self, failed=failed), wait_s
