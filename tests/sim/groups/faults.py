"""How bad a world is: all rates are drawn from its seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Faults:
    """Chances are per message; intervals are mean times in ms between two faults, 0 for never."""

    lost: float
    doubled: float
    delay_max_ms: int
    commit_delay_max_ms: int
    crash_every_ms: int
    pause_every_ms: int
    leave_every_ms: int
    failover_every_ms: int
    clock_drift: float

    @classmethod
    def drawn(cls, rng: Random) -> Faults:
        return cls(
            lost=rng.choice((0.0, 0.0, 0.01, 0.05, 0.15)),
            doubled=rng.choice((0.0, 0.0, 0.02, 0.1)),
            delay_max_ms=rng.choice((1, 20, 200, 1_500)),
            commit_delay_max_ms=rng.choice((0, 20, 500)),
            crash_every_ms=rng.choice((0, 15_000, 40_000)),
            pause_every_ms=rng.choice((0, 20_000, 50_000)),
            leave_every_ms=rng.choice((0, 20_000, 50_000)),
            failover_every_ms=rng.choice((0, 10_000, 30_000)),
            clock_drift=rng.choice((0.0, 0.02, 0.2)),
        )

    @classmethod
    def none(cls) -> Faults:
        return cls(0.0, 0.0, 1, 0, 0, 0, 0, 0, 0.0)
