"""Seeds that once found something. They are run before any others, for ever."""

from __future__ import annotations

FOUND: tuple[tuple[int, int], ...] = (
    (6, 3),
    (8, 3),
    (40, 3),
    (63, 5),
    (186, 3),
    (325, 3),
    (433, 3),
    (533, 3),
    (569, 4),
    (585, 5),
    (627, 3),
    (1881, 5),
    (3002, 3),
)
"""(seed, nodes)."""

SECONDS = 10.0
"""Virtual seconds of trouble in a run."""

BUG_SEEDS = 500
"""Within so many seeds a planted bug must show."""

SHAPES = (3, 3, 3, 5, 1, 4)
"""How many nodes the clusters have, in turn."""
