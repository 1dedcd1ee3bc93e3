"""What was seen in one moment of a soak."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """Counters since the start, and what stood at that moment."""

    at_s: float
    asked: float
    written: int
    """Acknowledged."""
    read: int
    """By all groups together, and by the query."""
    group_lags: dict[str, int]
    query_lag: int
    query_batch_s: float
    node_rss_mb: float
    node_cpu_s: float
    clients_rss_mb: float
    clients_cpu_s: float
    spark_rss_mb: float
    spark_cpu_s: float
    files: int
    disk_mb: float
    loop_stalls: float
    loop_lag_p99_ms: float
    segments_deleted: float
    errors: int
