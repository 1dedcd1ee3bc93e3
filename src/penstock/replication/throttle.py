"""Replication throttles: how fast the replicas that a topic lists may be copied, at the leader and at the follower.

As in Kafka: the rate is taken over the last eleven samples of one second, so a pause lets a burst through, and only
replicas that are listed *and* not in sync are held back, so that a throttle never pushes anybody out of the ISR.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from penstock.model.ids import NodeId

SAMPLE_MS: Final = 1_000
SAMPLES: Final = 11


class Throttle:
    """Counts what listed replicas moved. One for each direction of a broker; the rate is asked anew each time."""

    __slots__ = ("_rate_bytes_per_s", "_samples", "_total_bytes")

    def __init__(self, rate_bytes_per_s: Callable[[], int]) -> None:
        self._rate_bytes_per_s = rate_bytes_per_s
        self._samples: deque[list[float]] = deque()  # [when it began, bytes], the oldest first
        self._total_bytes = 0.0

    def count(self, size: int, now_ms: float) -> None:
        """`size` bytes of listed replicas went by. `now_ms` is monotonic and never falls."""
        self._expire(now_ms)
        if not self._samples or now_ms - self._samples[-1][0] >= SAMPLE_MS:
            self._samples.append([now_ms, 0])
        self._samples[-1][1] += size
        self._total_bytes += size

    def exceeded(self, now_ms: float) -> bool:
        """Whether more went by than the rate allows, counted over what is remembered and at least one second."""
        return self.rate(now_ms) > self._rate_bytes_per_s()

    def rate(self, now_ms: float) -> float:
        """Bytes a second."""
        self._expire(now_ms)
        if not self._samples:
            return 0.0
        return self._total_bytes * 1_000 / max(now_ms - self._samples[0][0], SAMPLE_MS)

    def _expire(self, now_ms: float) -> None:
        samples = self._samples
        while samples and now_ms - samples[0][0] >= SAMPLES * SAMPLE_MS:
            self._total_bytes -= samples.popleft()[1]


def lists(throttled: Collection[str], partition: int, node: NodeId) -> bool:
    """Whether a topic's `*.replication.throttled.replicas` names this replica; `*` names all."""
    return bool(throttled) and ("*" in throttled or f"{partition}:{node}" in throttled)
