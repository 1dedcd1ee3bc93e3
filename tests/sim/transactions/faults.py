"""How bad a world is: all rates are drawn from its seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Faults:
    """Chances are per message or transaction; intervals are mean times in ms between two faults, 0 for never."""

    lost: float
    doubled: float
    delay_max_ms: int
    commit_delay_max_ms: int
    marker_lost: float
    marker_delay_max_ms: int
    zombie_markers: float
    stalls: float
    crashes: float
    failover_every_ms: int
    lead_on_every_ms: int
    unwritable_every_ms: int
    no_producer_id: float

    @classmethod
    def drawn(cls, rng: Random) -> Faults:
        return cls(
            lost=rng.choice((0.0, 0.0, 0.02, 0.1)),
            doubled=rng.choice((0.0, 0.05, 0.2)),
            delay_max_ms=rng.choice((1, 20, 200, 1_000)),
            commit_delay_max_ms=rng.choice((0, 20, 300)),
            marker_lost=rng.choice((0.0, 0.1, 0.4)),
            marker_delay_max_ms=rng.choice((1, 50, 1_500)),
            zombie_markers=rng.choice((0.0, 0.3)),
            stalls=rng.choice((0.0, 0.05, 0.2)),
            crashes=rng.choice((0.0, 0.05, 0.15)),
            failover_every_ms=rng.choice((0, 4_000, 15_000)),
            lead_on_every_ms=rng.choice((0, 5_000, 20_000)),
            unwritable_every_ms=rng.choice((0, 0, 10_000)),
            no_producer_id=rng.choice((0.0, 0.0, 0.2)),
        )

    @classmethod
    def healed(cls) -> Faults:
        """Nothing is lost, and everything takes a little time."""
        return cls(0.0, 0.0, 5, 10, 0.0, 150, 0.0, 0.0, 0.0, 0, 0, 0, 0.0)
