"""Where the time of our brokers goes while they replicate: one of three nodes runs under Python's profiler."""

from __future__ import annotations

import pstats
import sys
from pathlib import Path

from bench.cluster_runs import Contender
from penstock.bench import raw
from tests.compat.cluster import ClusterNode, PenstockCluster

LANES = 6
ROWS = 20
# What a node does once, when it starts and loads its code, is no part of what it does under load.
STARTING = ("importlib", "marshal", "builtins.compile", "builtins.exec", "_imp.", "open_code", "namedtuple", "enum.py")
WAITING = ("run_forever", "poll", "epoll")


class ProfiledCluster(PenstockCluster):
    """Node 1 writes down what it did when it is stopped."""

    def command(self, node: ClusterNode) -> list[str]:
        if node.node_id != 1:
            return super().command(node)
        words = ["server", "start", "--config", str(node.config)]
        return [sys.executable, "-m", "cProfile", "-o", str(self.profile), "-m", "penstock.cli.main", *words]

    @property
    def profile(self) -> Path:
        return self.home / "node-1.profile"


def profile_lines(home: Path, seconds: float) -> list[str]:
    """A table for the page: the functions in which a node that leads and follows spends most of its time."""
    with ProfiledCluster(home, 3) as cluster:
        contender = Contender("penstock", cluster)
        contender.new_topic("profiled", LANES)
        batch, records = raw.make_batch(1_000, 16_000, "none")
        raw.produce_load(
            contender.leaders("profiled", LANES), "profiled", batch, records,
            acks=-1, seconds=seconds, bytes_max=1 << 40, lanes=LANES,
        )  # fmt: skip
        cluster.stop()
        stats = pstats.Stats(str(cluster.profile))
    rows = [
        (own_s, calls, f"{Path(file).name}:{line} {name}" if line else name)
        for (file, line, name), (_primitive, calls, own_s, _total, _callers) in stats.stats.items()  # type: ignore[attr-defined]
    ]
    rows = [row for row in rows if not any(word in row[2] for word in (*STARTING, *WAITING))]
    busy_s = sum(own_s for own_s, _, _ in rows)
    lines = ["| share | calls | function |", "|--:|--:|---|"]
    for own_s, calls, where in sorted(rows, reverse=True)[:ROWS]:
        lines.append(f"| {own_s / busy_s:.1%} | {calls:,} | `{where}` |")
    return lines
