"""Seeds that once found something. They are run before any others, as long as plans are drawn as they were then.

When what is drawn changes, a seed stands for another world, and the list begins anew.
"""

from __future__ import annotations

FOUND: tuple[tuple[int, int], ...] = (
    (6, 3), (1022, 3), (3318, 3), (3404, 3), (3244, 1), (3017, 4), (3023, 4), (3210, 3), (3220, 1), (3008, 3),
    (253, 3),
)  # fmt: skip
"""(seed, nodes)."""

SECONDS = 10.0
"""Virtual seconds of trouble in a run."""

BUG_SEEDS = 500
"""Within so many seeds a planted bug must show."""

SHAPES = (3, 3, 3, 5, 1, 4)
"""How many nodes the clusters have, in turn."""
