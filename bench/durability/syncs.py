"""What a sync before every acknowledgement costs.

Topics with `flush.messages=1` beside topics without, at 1, 8 and 64 clients that each have one request in flight.
Rounds go from broker to broker and from unsynced to synced.
"""

from __future__ import annotations

import argparse
import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import brokers, machine, memory, places
from bench.brokers import APACHE, PENSTOCK_NODE, Running
from penstock.bench import report
from penstock.bench.lanes import Lane
from penstock.bench.plot import line_chart
from penstock.bench.raw import make_batch, percentile
from penstock.bench.series import Results
from tests.compat import wire

CLIENTS = (1, 8, 64)
PARTITIONS = (8, 64)
BATCH_BYTES = (1_000, 16_000)
MODES: Mapping[str, Mapping[str, str]] = {"unsynced": {}, "synced": {"flush.messages": "1"}}
REPLY_TIMEOUT_S = 30.0
BARE_SYNCS = 40
# As much as a load writes.
MEMORY_BYTES = 500_000_000


@dataclass(frozen=True)
class Settings:
    """How long and how often."""

    rounds: int = 3
    warmup_s: float = 20.0
    load_s: float = 2.0

    def quick(self) -> Settings:
        return Settings(rounds=1, warmup_s=2.0, load_s=0.5)


@dataclass(frozen=True)
class Answered:
    """What a closed loop of clients got done."""

    seconds: float
    latencies_ms: list[float]

    @property
    def per_s(self) -> float:
        return len(self.latencies_ms) / self.seconds


def closed_loop(bootstrap: str, topic: str, partitions: int, batch: bytes, clients: int, seconds: float) -> Answered:
    """`clients` connections, each with one produce of acks=all in flight, spread over the partitions."""
    lanes = [Lane(bootstrap, topic, number % partitions, batch, -1) for number in range(clients)]
    by_number = {lane.socket.fileno(): lane for lane in lanes}
    sent: dict[int, float] = {}
    latencies_ms: list[float] = []
    poller = select.epoll()
    try:
        started = time.perf_counter()
        for number, lane in by_number.items():
            poller.register(number, select.EPOLLIN)
            sent[number] = time.perf_counter()
            lane.send()
        while time.perf_counter() - started < seconds:
            heard = poller.poll(REPLY_TIMEOUT_S)
            if not heard:
                raise TimeoutError(f"no answer to a produce within {REPLY_TIMEOUT_S:.0f} s")
            for number, _events in heard:
                if by_number[number].receive():
                    now = time.perf_counter()
                    latencies_ms.append((now - sent[number]) * 1000)
                    sent[number] = now
                    by_number[number].send()
        return Answered(time.perf_counter() - started, latencies_ms)
    finally:
        poller.close()
        for lane in lanes:
            lane.close()


def bare_sync_ms(home: Path) -> list[float]:
    """What the disk alone takes to make 16 KB durable that were appended to a file, over and over."""
    taken_ms: list[float] = []
    data = os.urandom(16_384)
    with (home / "bare").open("wb", buffering=0) as file:
        for _ in range(BARE_SYNCS):
            file.write(data)
            before = time.perf_counter()
            os.fdatasync(file.fileno())
            taken_ms.append((time.perf_counter() - before) * 1000)
    return taken_ms


class Suite:
    """Measures the brokers of one run into `results`."""

    def __init__(self, names: Sequence[str], settings: Settings, say: Callable[[str], None]) -> None:
        self.settings = settings
        self.results = Results(ours=PENSTOCK_NODE, rival=APACHE if APACHE in names else None)
        self._names, self._say = list(names), say

    def run(self) -> None:
        with brokers.running(self._names) as started:
            for broker in started:
                self._prepare(broker)
            for size in BATCH_BYTES:
                for partitions in PARTITIONS:
                    self._compare(started, size, partitions)

    def _prepare(self, broker: Running) -> None:
        for partitions in PARTITIONS:
            for mode, configs in MODES.items():
                wire.create_topic(broker.bootstrap, _topic(mode, partitions), partitions, dict(configs))
        warmup_s = self.settings.warmup_s if broker.name == APACHE else min(2.0, self.settings.warmup_s)
        self._say(f"warming up {brokers.TITLES[broker.name]} for {warmup_s:.0f} s")
        batch, _records = make_batch(1_000, 16_000, "none")
        for mode in MODES:
            closed_loop(broker.bootstrap, _topic(mode, 8), 8, batch, 64, warmup_s / len(MODES))

    def _compare(self, started: Sequence[Running], size: int, partitions: int) -> None:
        batch, _records = make_batch(1_000, size, "none")
        for number in range(1, self.settings.rounds + 1):
            self._say(f"round {number} of {self.settings.rounds}: {size // 1_000} KB, {partitions} partitions")
            for clients in CLIENTS:
                for broker in started:
                    self._once(broker, batch, size, partitions, clients)

    def _once(self, broker: Running, batch: bytes, size: int, partitions: int, clients: int) -> None:
        group = f"{size // 1_000} KB batches over {partitions} partitions"
        add, rates = self.results.add, {}
        for mode in MODES:
            # What the round before left in memory is nobody's to pay for now.
            os.sync()
            memory.refresh(MEMORY_BYTES, broker.node.home)
            done = closed_loop(
                broker.bootstrap, _topic(mode, partitions), partitions, batch, clients, self.settings.load_s
            )
            rates[mode] = done.per_s
            add(group, f"{mode}, {clients} clients", "requests/s", broker.name, done.per_s)
            if mode == "synced":
                for name, share in (("p50", 0.5), ("p99", 0.99)):
                    value = percentile(done.latencies_ms, share)
                    add(group, f"synced, {clients} clients, {name}", "ms", broker.name, value, higher_is_better=False)
        add(group, f"kept of it, {clients} clients", "%", broker.name, rates["synced"] / rates["unsynced"] * 100)


def _topic(mode: str, partitions: int) -> str:
    return f"{mode}-{partitions}"


def share_chart(results: Results) -> str:
    """How much of the unsynced throughput is left, against the number of clients."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for series in results.series.values():
        if series.name.startswith("kept of it"):
            clients = float(series.name.split()[-2])
            for broker in series.samples:
                middle = series.median(broker)
                if middle is not None:
                    lines.setdefault(f"{brokers.TITLES[broker]}, {series.group}", []).append((clients, middle))
    return line_chart(
        "Throughput that is left when every acknowledgement waits for a sync",
        lines,
        x_label="clients",
        y_label="% of unsynced",
        log_x=True,
    )


INTRODUCTION = (
    "All figures are of one run. A ratio above 1 means that Penstock is ahead, whatever the figure.",
    "",
    "- **What is fsynced.** *Synced* topics have `flush.messages=1`: a produce is acknowledged when the bytes of its",
    "  batch are on the disk of the leader, by fdatasync of the segment's file or, when many wait at once and little",
    "  else is dirty, by one sync of the volume. *Unsynced* topics have Kafka's defaults: nothing is synced before an",
    "  acknowledgement. Both brokers get the same settings, one replica, acks=all.",
    "- Clients are raw connections with one request in flight each: nobody sends before the last answer. So one client",
    "  sees the latency of a sync, and 64 see whether one sync serves all who wait. Latencies are of this closed loop.",
    "- Before each load the machine writes out what the one before left in memory, and a file as large as the load is",
    "  written and removed, because pages that a virtual machine gave back to its host are dear to whoever is first.",
    "- *Kept of it* is the synced throughput as a share of the unsynced one of the same broker in the same round.",
    "- What a disk that hangs for seconds does to a cluster is on [a page of its own](durability-hanging.md).",
    "",
    "![what is left](durability-kept.svg)",
)


def measure(
    names: Sequence[str], remarks: Sequence[str], given: argparse.Namespace, say: Callable[[str], None]
) -> list[Path]:
    settings = Settings().quick() if given.quick else Settings()
    if given.rounds:
        settings = Settings(**{**asdict(settings), "rounds": given.rounds})
    with brokers.scratch() as home:
        bare_ms = bare_sync_ms(home)
    suite = Suite(names, settings, say)
    suite.run()
    print(report.terminal(suite.results, brokers.TITLES))
    middle, worst = percentile(bare_ms, 0.5), max(bare_ms)
    page = report.Page(
        suite="durability",
        title="A sync before every acknowledgement",
        command="make bench SUITE=durability",
        introduction=INTRODUCTION,
        machine=machine.describe(list(names))
        | {"disk": f"fdatasync of 16 KB appended to a file takes {middle:.2f} ms in the median, {worst:.1f} at worst"},
        parameters={name.replace("_", " "): value for name, value in asdict(settings).items()},
        remarks=remarks,
        titles=brokers.TITLES,
    )
    written = places.write(page, suite.results, publish=not given.no_page)
    if not given.no_page:
        plot = places.DOCS / "durability-kept.svg"
        plot.write_text(share_chart(suite.results))
        written.append(plot)
    return written
