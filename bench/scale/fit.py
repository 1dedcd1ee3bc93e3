"""How a figure grows: flat, or a straight line with a slope, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FLAT_SHARE = 0.15
"""A figure that grows by less than this share over the whole range does not grow."""
BENT = 2.0
"""How many times steeper or flatter the last stretch may be than the ones before it and still be the same line."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """The line of least squares through the points, and what it is worth."""

    slope: float
    start: float
    verdict: str


def fit(points: Sequence[Point], noise: float) -> Fit:
    """`noise` is how much two readings of the same thing may differ on a busy machine."""
    ordered = sorted(points)
    if len(ordered) < 2:
        return Fit(0.0, ordered[0][1] if ordered else 0.0, "one point")
    slope, start = _line(ordered)
    (first_x, first_y), (last_x, _) = ordered[0], ordered[-1]
    growth = slope * (last_x - first_x)
    # What falls as there is more of it is noise too: nothing gets cheaper that way.
    if growth <= max(noise, FLAT_SHARE * abs(first_y)):
        return Fit(slope, start, "flat")
    return Fit(slope, start, _shape(ordered, noise))


def _line(points: Sequence[Point]) -> tuple[float, float]:
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
    return slope, middle_y - slope * middle_x


def _shape(points: Sequence[Point], noise: float) -> str:
    """The last stretch against the line from the first point to the last but one."""
    (first_x, first_y), (before_x, before_y), (last_x, last_y) = points[0], points[-2], points[-1]
    if before_x == first_x:
        return "linear"
    early = (before_y - first_y) / (before_x - first_x)
    expected, steps = first_y + early * (last_x - first_x), last_x - before_x
    late = (last_y - before_y) / steps
    # What the earlier points say of the slope is only as sure as the noise over their short stretch.
    doubt = noise / (before_x - first_x) * (last_x - first_x)
    if last_y - expected > doubt and late > BENT * early:
        return "steeper than linear"
    if expected - last_y > doubt and late * BENT < early:
        return "flatter than linear"
    return "linear"
