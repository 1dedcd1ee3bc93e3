"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """`megabytes`, `connections` and `records` are of a round of TLS, `sample_s` of each load of rights and limits."""

    megabytes: int
    connections: int
    records: int
    rounds: int
    warmup_s: float
    sample_s: float


WHOLE = Plan(megabytes=1_000, connections=1_000, records=2_000, rounds=3, warmup_s=60, sample_s=1.5)
QUICK = Plan(megabytes=20, connections=50, records=100, rounds=1, warmup_s=0, sample_s=0.2)
