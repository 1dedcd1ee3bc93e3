"""A look a second at everybody: what was written and read, what it cost, how far behind the readers are."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path

import psutil

from bench.soak.look import Look
from bench.soak.mix import GROUPS, QUERY_TOPIC
from bench.soak.stage import QUERY, Stage

SCRAPE_S = 5.0
"""The node's own numbers cost it a few milliseconds, so they are asked for less often."""

_STALLS = "penstock_loop_stalls_total"
_LAG = 'penstock_loop_lag_ms{quantile="0.99"}'
_DELETED = "penstock_segments_deleted_total"


class Observer:
    """Looks at a stage. What is asked for less often stays what it was."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._scraped: dict[str, float] = {}
        self._scrape_at = 0.0
        self._disk_mb = 0.0

    def look(self) -> Look:
        stage, now = self._stage, time.monotonic()
        if now >= self._scrape_at:
            self._scrape_at = now + SCRAPE_S
            self._scraped = scrape(stage.admin)
            self._disk_mb = _size_mb(stage.node.node.data_dir)
        written = stage.totals()
        lags, read = {}, 0
        for group in GROUPS:
            report = stage.parties[f"group {group.name}"].report
            read += report.get("read", 0)
            ends = report.get("ends", {})
            lags[group.name] = max(0, sum(written[topic] - ends.get(topic, 0) for topic in group.topics))
        query = stage.parties[QUERY].report
        family = {name: _family(party.pid) for name, party in stage.parties.items()}
        clients = [each for name, each in family.items() if name != QUERY]
        node = psutil.Process(stage.node.node.pid)
        return Look(
            at_s=now,
            asked=sum(
                writer["asked"] for party in stage.writers() for writer in party.report.get("writers", {}).values()
            ),
            written=sum(written.values()),
            read=read + int(query.get("end", 0)),
            group_lags=lags,
            query_lag=max(0, written[QUERY_TOPIC] - int(query.get("end", 0))),
            query_batch_s=query.get("batch_s", 0.0),
            node_rss_mb=_family(node.pid)[0],
            node_cpu_s=_family(node.pid)[1],
            clients_rss_mb=sum(rss for rss, _ in clients),
            clients_cpu_s=sum(cpu for _, cpu in clients),
            spark_rss_mb=family[QUERY][0],
            spark_cpu_s=family[QUERY][1],
            files=node.num_fds(),
            disk_mb=self._disk_mb,
            loop_stalls=self._scraped.get(_STALLS, 0.0),
            loop_lag_p99_ms=self._scraped.get(_LAG, 0.0),
            segments_deleted=self._scraped.get(_DELETED, 0.0),
            errors=sum(party.error_count for party in stage.parties.values()),
        )


def _family(pid: int) -> tuple[float, float]:
    """Megabytes and CPU seconds of a process and all that it started."""
    rss = cpu = 0.0
    try:
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with process.oneshot():
                times = process.cpu_times()
                rss += process.memory_info().rss / 1e6
                cpu += times.user + times.system + times.children_user + times.children_system
    except psutil.NoSuchProcess:
        pass  # the next look is better
    return rss, cpu


def _size_mb(directory: Path) -> float:
    """What the files of the node take; some go while they are looked at."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total / 1e6


def scrape(admin: str) -> dict[str, float]:
    """The node's numbers by name and labels."""
    with urllib.request.urlopen(f"http://{admin}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    pairs = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}
