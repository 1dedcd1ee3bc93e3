"""The size of a demo, its names, and when what happens. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TOPIC: Final = "access"
LETTERS: Final = "access.dead"
MINUTES: Final = "access.per-minute"
TABLE: Final = "access"
PIPELINE: Final = "access"
AGENT: Final = "web-1"
INPUT: Final = "access"

PARTITIONS: Final = 3
SECONDS: Final = 60
LINES_PER_S: Final = 4_000
BROKEN_SHARE: Final = 0.004
"""Of the lines: requests that are none, and lines that a crash cut off."""

ROTATIONS: Final = 5.5
"""Of the log in a day; the last part of it is not rotated away."""

NODE_SETTINGS: Final = {
    # A node that dies is missed after three seconds, not nine: a demo has less time than a night.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "1000",
}

PLANTS: Final = ("lost", "doubled", "gap")
"""What `--plant` breaks on purpose; planting.py says how."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`seconds` is how long lines are written, if the crashes are over by then; a day of the log takes as long."""

    seconds: float = SECONDS
    lines_per_s: int = LINES_PER_S
    plant: str | None = None
    keep: bool = False

    @property
    def node_dies_s(self) -> float:
        return 0.35 * self.seconds

    @property
    def node_away_s(self) -> float:
        """How long it stays away: it is missed, others lead, and the view shows that nothing stops."""
        return max(5.0, 0.12 * self.seconds)

    @property
    def agent_dies_s(self) -> float:
        return 0.55 * self.seconds

    @property
    def driver_dies_s(self) -> float:
        return 0.6 * self.seconds
