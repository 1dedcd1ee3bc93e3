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
    sync_max_ms: int
    crash_every_ms: int
    pause_every_ms: int
    cut_every_ms: int
    change_every_ms: int
    snapshot_every_ms: int
    append_every_ms: int

    @classmethod
    def drawn(cls, rng: Random) -> Faults:
        choice = rng.choice
        return cls(
            lost=choice((0.0, 0.0, 0.02, 0.1, 0.3)),
            doubled=choice((0.0, 0.0, 0.1)),
            delay_max_ms=choice((2, 20, 60, 150)),
            sync_max_ms=choice((1, 20, 100, 300)),
            crash_every_ms=choice((0, 300, 800, 2_000)),
            pause_every_ms=choice((0, 0, 600, 1_500)),
            cut_every_ms=choice((0, 0, 500, 1_500)),
            change_every_ms=choice((0, 0, 150, 500)),
            snapshot_every_ms=choice((0, 0, 300)),
            append_every_ms=choice((30, 100, 300)),
        )

    @classmethod
    def none(cls) -> Faults:
        return cls(0.0, 0.0, 2, 1, 0, 0, 0, 0, 0, 100)


@dataclass(frozen=True)
class Planted:
    """Bugs that a world can be given, to see that it finds them."""

    votes_forgotten: bool = False
    """A crash takes the `quorum-state` that was written."""
    fetches_unsynced: bool = False
    """A follower fetches on before what it has is on its platter."""


SOUND = Planted()
