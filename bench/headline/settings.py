"""How long and how much of everything: the full run, and the look of two minutes."""

from __future__ import annotations

from dataclasses import dataclass

PARTS = ("produce", "tools", "latency", "curves", "disk", "cluster", "start", "partitions")

# What a part takes, for the time that is left; the first entry is paid by whoever needs the three brokers.
SECONDS = {
    "warm-up": 82.0, "produce": 265.0, "tools": 255.0, "latency": 145.0, "curves": 70.0,
    "disk": 60.0, "cluster": 155.0, "start": 45.0, "partitions": 10.0,
}  # fmt: skip
QUICK_SECONDS = {
    "warm-up": 22.0, "produce": 25.0, "tools": 25.0, "latency": 6.0, "curves": 20.0,
    "disk": 10.0, "cluster": 30.0, "start": 12.0, "partitions": 5.0,
}  # fmt: skip

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Settings:
    """The defaults are the run whose figures are published."""

    rounds: int = 3
    again_s_max: float = 90.0
    warmup_s: float = 60.0
    sample_s: float = 1.0
    sample_bytes_max: int = 1_000 * MEGABYTE
    filled_bytes: int = 300 * MEGABYTE
    tool_rounds: int = 3
    tool_every: int = 1
    tool_bytes: int = 64 * MEGABYTE
    tool_records_max: int = 640_000
    consumed_bytes: int = 300 * MEGABYTE
    latency_bytes_per_s: int = 20 * MEGABYTE
    latency_rounds: int = 5
    latency_s: float = 3.0
    end_to_end_s: float = 3.0
    curve_s: float = 0.5
    grown_bytes: int = 2_000 * MEGABYTE
    disk_limits: float = 3.0
    disk_s_max: float = 60.0
    cluster_warmup_s: float = 60.0
    cluster_s: float = 2.0
    cluster_bytes_max: int = 400 * MEGABYTE
    cluster_tool_records: int = 100_000
    cluster_latency_s: float = 4.0
    idle_s: float = 3.0
    partitions: int = 10_000
    kafka_partitions: bool = False
    properties: str = "none"


QUICK = Settings(
    rounds=1,
    again_s_max=0,
    warmup_s=5,
    sample_s=0.3,
    sample_bytes_max=200 * MEGABYTE,
    filled_bytes=100 * MEGABYTE,
    tool_rounds=1,
    tool_every=4,
    tool_bytes=20 * MEGABYTE,
    tool_records_max=100_000,
    consumed_bytes=40 * MEGABYTE,
    latency_rounds=1,
    latency_s=1,
    end_to_end_s=1,
    curve_s=0.25,
    grown_bytes=300 * MEGABYTE,
    disk_limits=0.1,
    disk_s_max=4,
    cluster_warmup_s=3,
    cluster_s=0.5,
    cluster_bytes_max=50 * MEGABYTE,
    cluster_tool_records=10_000,
    cluster_latency_s=1,
    idle_s=1,
    partitions=300,
)
