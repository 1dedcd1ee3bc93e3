"""A look at everybody every few seconds: memory, descriptors, threads, files, the metadata log, latency."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path

import psutil

from penstock.bench.raw import percentile
from tests.life.world import MORTAL, STEADY, World

METADATA = "__cluster_metadata-0"
LOAD = "load of the machine"
LATENCY_P50, LATENCY_P99 = "produce latency p50", "produce latency p99"


class Samples:
    """`series` has what was seen by name, each with the seconds since the start and the value."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._began = time.monotonic()
        self._latencies_seen = 0
        self.series: dict[str, list[tuple[float, float]]] = defaultdict(list)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def look(self) -> None:
        at = self.seconds
        for name, pid in self._world.processes().items():
            for who, process in _family(name, pid):
                self._look_at(at, who, process)
        for node_id in (*STEADY, MORTAL):
            data_dir = self._world.cluster.nodes[node_id].data_dir
            self.series[f"files of node {node_id}"].append((at, _files(data_dir)))
            self.series[f"metadata log of node {node_id}, KB"].append((at, _bytes(data_dir / METADATA) / 1e3))
        self.series["state of agent, KB"].append((at, _bytes(self._world.home / "agent") / 1e3))
        if self._world.measured:
            self.series["files of the lake"].append((at, _files(self._world.home / "lake")))
        self.series[LOAD].append((at, os.getloadavg()[0]))
        self._look_at_latency(at)

    def _look_at(self, at: float, who: str, process: psutil.Process) -> None:
        try:
            with process.oneshot():
                seen = {
                    "memory": process.memory_info().rss / 1e6,
                    "descriptors": process.num_fds(),
                    "threads": process.num_threads(),
                }
        except psutil.NoSuchProcess:
            return
        for what, value in seen.items():
            unit = ", MB" if what == "memory" else ""
            self.series[f"{what} of {who}{unit}"].append((at, float(value)))

    def _look_at_latency(self, at: float) -> None:
        news = self._world.latencies_ms[self._latencies_seen :]
        self._latencies_seen += len(news)
        measured = [ms for _, some in news for ms in some]
        if measured:
            self.series[f"{LATENCY_P50}, ms"].append((at, percentile(measured, 0.5)))
            self.series[f"{LATENCY_P99}, ms"].append((at, percentile(measured, 0.99)))


def _family(name: str, pid: int) -> list[tuple[str, psutil.Process]]:
    """A process by its name; of the pipeline the driver and its JVM. Helpers that come and go are nobody's memory."""
    try:
        root = psutil.Process(pid)
        if name != "pipeline":
            return [(name, root)]
        family = [root, *root.children(recursive=True)]
        java = [each for each in family if each.name() == "java"]
        driver = [each for each in family if java and each.pid == java[0].ppid()]
    except psutil.NoSuchProcess:
        return []
    found = [("the pipeline's command", root)]
    found += [("the pipeline's driver", each) for each in driver if each.pid != pid]
    return found + [("JVM of the pipeline", each) for each in java[:1]]


def _files(directory: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(directory))


def _bytes(directory: Path) -> int:
    total = 0
    for path in directory.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue  # it goes while it is looked at
    return total
