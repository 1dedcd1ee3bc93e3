"""The disk regime: more is written than the kernel may keep dirty in memory, so that the disk has its say.

The limit is the kernel's own (`nr_dirty_threshold`); several times of it go through each broker, or as much as the time
allows, and the page says how much that was. Before each broker all dirty pages are on disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from bench.brokers import NULL, Running
from bench.headline.stage import LANES, Stage
from penstock.bench import raw

GROUP = "disk regime: 128 KB batches, 1 KB records, acks=all"
STEP_BYTES = 500_000_000
GB = 1e9
SPARE_BYTES = 5_000_000_000


def dirty_limit_bytes(vmstat: str, page_bytes: int) -> int:
    """Above so much dirty memory the kernel makes writers wait for the disk."""
    figures = dict(line.split(maxsplit=1) for line in vmstat.splitlines())
    return int(figures["nr_dirty_threshold"]) * page_bytes


def measure(stage: Stage, started: Sequence[Running]) -> None:
    limit = dirty_limit_bytes(Path("/proc/vmstat").read_text(), os.sysconf("SC_PAGE_SIZE"))
    wanted = round(limit * stage.settings.disk_limits)
    batch, records = raw.make_batch(1_000, 128_000, "none")
    kept = [broker for broker in started if broker.name != NULL]
    lines: dict[str, list[tuple[float, float]]] = {}
    for number, broker in enumerate(kept):
        # What the broker before wrote takes its room on the disk until its files are gone.
        stage.make_ready(broker, 0)
        free = os.statvfs(broker.node.home).f_bavail * os.statvfs(broker.node.home).f_frsize
        room = min(wanted, free - SPARE_BYTES)
        title = stage.title(broker.name)
        stage.progress.step(number, len(kept), f"{title}: {room / GB:.0f} GB, dirty limit {limit / GB:.1f} GB")
        os.sync()
        with stage.topic(broker) as topic:
            began, before = time.perf_counter(), broker.usage().cpu_s
            written = 0
            while written < room and time.perf_counter() - began < stage.settings.disk_s_max:
                load = raw.produce_load(
                    broker.bootstrap, topic, batch, records,
                    acks=-1, seconds=stage.settings.disk_s_max, bytes_max=min(STEP_BYTES, room), lanes=LANES,
                )  # fmt: skip
                written += load.wire_bytes
                lines.setdefault(title, []).append((written / GB, load.megabytes_per_s))
            took_s = time.perf_counter() - began
            stage.rate(GROUP, "throughput", "MB/s", broker.name, written / 1e6 / took_s)
            stage.cost(GROUP, "broker CPU", "CPU-s/GB", broker.name, (broker.usage().cpu_s - before) / (written / GB))
        stage.remarks.append(
            f"Disk regime, {title}: {written / GB:.1f} GB in {took_s:.0f} s, {written / limit:.1f} times the kernel's "
            f"limit of {limit / GB:.1f} GB dirty memory."
        )
    os.sync()
    stage.curves["disk"] = lines
