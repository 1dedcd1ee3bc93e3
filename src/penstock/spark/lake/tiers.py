"""Which small files become larger ones, so that files stay few and no byte is rewritten often. Pure; for both formats.

Files of one partition stand in tiers by their size: a tier for each number of digits. A tier is rewritten when ten
files are in it, or as many as fill a whole file, so what comes of it stands at least one tier higher, but for what
Parquet saves: a byte is rewritten about once a tier, and ten times as many batches cost one rewriting more. What waits
is at most nine files a tier.

A day of a batch of 50 KiB each ten seconds (`tests/unit/spark/lake/test_tiers.py`): all small files together at each
round of 50 batches are rewritten 18.8 times, these tiers 2.9 times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

FAN_IN: Final = 10
"""Files of a tier that become one. Sizes of a tier differ by less than that, so the one file is above the tier."""
LARGE_ENOUGH: Final = 0.5
"""Of the target: such a file is left alone. Of two smaller ones a file can always be made."""


def plan(sizes: Sequence[int], target_bytes: int, *, whole: bool = False) -> list[list[int]]:
    """Which files of one partition become one, as places in `sizes`; each bin in the table's order. Others stay.

    `whole` takes all small files together, however often that rewrites them: for whoever asks for it by hand.
    """
    tiers: dict[int, list[int]] = defaultdict(list)
    for place, size_bytes in enumerate(sizes):
        if size_bytes < target_bytes * LARGE_ENOUGH:
            tiers[0 if whole else len(str(size_bytes))].append(place)
    bins = [each for tier in sorted(tiers) for each in _bins(tiers[tier], sizes, target_bytes)]
    fewest = 2 if whole else FAN_IN
    return [places for places, full in bins if len(places) >= (2 if full else fewest)]


def _bins(places: Sequence[int], sizes: Sequence[int], target_bytes: int) -> list[tuple[list[int], bool]]:
    """Bins no larger than the target, and whether another file would not have fitted."""
    found: list[tuple[list[int], bool]] = []
    filling: list[int] = []
    filled_bytes = 0
    for place in places:
        if filling and filled_bytes + sizes[place] > target_bytes:
            found.append((filling, True))
            filling, filled_bytes = [], 0
        filling.append(place)
        filled_bytes += sizes[place]
    return [*found, (filling, False)]
