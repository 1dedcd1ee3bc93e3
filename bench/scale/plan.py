"""How far each thing is grown, and for how long each reading is taken."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """The defaults stay under fifteen minutes on two cores."""

    partitions: tuple[int, ...] = (10, 100, 1_000, 10_000)
    partitions_a_topic: int = 100
    topics: tuple[int, ...] = (5, 50, 500, 5_000)
    """Topics of one partition."""
    large_topic: int = 1_000
    """Partitions of the topic that is made and removed while others produce."""
    connections: tuple[int, ...] = (1, 100, 500, 2_000)
    groups: tuple[int, ...] = (0, 10, 100, 1_000)
    log_gb: tuple[int, ...] = (0, 1, 10, 100)
    idle_s: float = 6.0
    latency_s: float = 3.0
    rate_per_s: float = 500.0

    def quick(self) -> Plan:
        """Small sizes and short readings: to see that it works."""
        return Plan(
            partitions=(10, 100, 500),
            topics=(5, 50, 200),
            large_topic=100,
            connections=(1, 50, 200),
            groups=(0, 10, 50),
            log_gb=(0, 1, 3),
            idle_s=1.0,
            latency_s=1.0,
        )
