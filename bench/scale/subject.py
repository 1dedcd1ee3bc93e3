"""The node that is measured: started, read, stopped, killed, started again. CPU time is its own, to the nanosecond."""

from __future__ import annotations

import resource
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import psutil

from bench import brokers
from bench.scale.found import IDLE_CPU, P50, P99, RSS, Findings
from penstock.bench import raw
from tests.compat import wire
from tests.compat.judged import Penstock
from tests.compat.processes import free_ports, wait_for

PROBE = "probe"
"""The topic of one partition that produces go to."""
TOPICS_A_REQUEST = 100
SETTLED_S, SETTLED_PERCENT = 0.5, 5.0
READINGS = 3
"""Of a latency; their median counts."""


def allow_many_files() -> None:
    """Raises the soft limit of descriptors to the hard one, for us and the nodes that we start."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Subject:
    """One Penstock node on Kafka's properties for a single node."""

    def __init__(self, home: Path, properties: Mapping[str, str] | None = None) -> None:
        (self._admin_port,) = free_ports(1)
        self.node = Penstock(
            home, properties={"penstock.admin.listener": f"127.0.0.1:{self._admin_port}", **(properties or {})}
        )
        self._batch, _records = raw.make_batch(100, 1_000, "none")

    @property
    def bootstrap(self) -> str:
        return self.node.bootstrap

    @property
    def data_dir(self) -> Path:
        return self.node.data_dir

    # Life

    def begin(self) -> None:
        """Formats, starts and makes the topic for produces."""
        self.node.start()
        self.create({PROBE: 1})

    def start_s(self) -> float:
        """Starts the process and returns the time until a produce is acknowledged and every partition is led."""
        began = time.perf_counter()
        self.node.launch()
        wait_for("an acknowledged produce", self._acknowledged, timeout_s=300, pause_s=0.005)
        wait_for("leaders of all partitions", lambda: wire.all_led(self.bootstrap), timeout_s=300, pause_s=0.01)
        return time.perf_counter() - began

    def _acknowledged(self) -> bool:
        try:
            with wire.connect(self.bootstrap) as connection:
                wire.produce(connection, PROBE, 0, self._batch)
                return True
        except (OSError, wire.BrokerError):
            return False

    # Readings

    def rss_mb(self) -> float:
        return float(psutil.Process(self.node.pid).memory_info().rss / 1e6)

    def cpu_s(self) -> float:
        """All CPU time of the process so far; the kernel's clock for it, not the ticks of /proc."""
        return time.clock_gettime((~self.node.pid << 3) | 2)

    def written_bytes(self) -> int:
        """What the process has handed to write calls so far."""
        for line in Path(f"/proc/{self.node.pid}/io").read_text().splitlines():
            if line.startswith("wchar:"):
                return int(line.split()[1])
        raise AssertionError("the kernel does not account for writes")

    def settle(self) -> None:
        """Waits until the node has done by itself what was left to do: it takes up new partitions bit by bit."""
        wait_for("a node at rest", lambda: self.idle_percent(SETTLED_S) < SETTLED_PERCENT, timeout_s=120, pause_s=0)

    def idle_percent(self, seconds: float) -> float:
        before, began = self.cpu_s(), time.perf_counter()
        time.sleep(seconds)
        return (self.cpu_s() - before) / (time.perf_counter() - began) * 100

    def cpu_us_each(self, count: int, act: Callable[[], object]) -> float:
        """CPU of the node for one of `count` times `act`."""
        before = self.cpu_s()
        for _ in range(count):
            act()
        return (self.cpu_s() - before) / count * 1e6

    def median_ms(self, count: int, act: Callable[[], object]) -> float:
        took = []
        for _ in range(count):
            began = time.perf_counter()
            act()
            took.append(time.perf_counter() - began)
        return median(took) * 1e3

    def latencies_ms(self, rate_per_s: float, seconds: float) -> list[float]:
        return raw.latencies_ms(
            self.bootstrap, PROBE, self._batch, acks=-1, rate_per_s=rate_per_s, seconds=seconds, lanes=1
        )

    @contextmanager
    def meanwhile(self, act: Callable[[], object]) -> Iterator[None]:
        """Runs `act` in a thread beside the block; both are done at the end."""
        beside = threading.Thread(target=act)
        beside.start()
        try:
            yield
        finally:
            beside.join()

    def metrics(self) -> int:
        """Reads the page of metrics; its size."""
        with urlopen(f"http://127.0.0.1:{self._admin_port}/metrics", timeout=60) as page:
            return len(page.read())

    # Topics

    def create(self, topics: Mapping[str, int]) -> None:
        """Makes topics by name and count of partitions, and waits until the last of them is led."""
        names = list(topics)
        with wire.connect(self.bootstrap) as connection:
            for start in range(0, len(names), TOPICS_A_REQUEST):
                chosen = names[start : start + TOPICS_A_REQUEST]
                self.create_with(connection, {name: topics[name] for name in chosen})
        wait_for("leaders", lambda: wire.all_led(self.bootstrap, names[-1:]), timeout_s=120, pause_s=0.002)

    @staticmethod
    def create_with(connection: wire.Connection, topics: Mapping[str, int]) -> None:
        """One CreateTopics; returns with its answer."""
        wanted = b"".join(
            wire.text(name) + struct.pack(">ihii", partitions, 1, 0, 0) for name, partitions in topics.items()
        )
        body = struct.pack(">i", len(topics)) + wanted + struct.pack(">i?", 120_000, False)
        reply = connection.call(wire.request(wire.CREATE_TOPICS, 4, body))
        reply.take("i")
        for _ in range(reply.one("i")):
            name, error, message = reply.text(), reply.one("h"), reply.text()
            if error:
                raise wire.BrokerError(f"creating {name}: error {error} {message or ''}")

    def delete(self, topic: str) -> None:
        wire.delete_topic(self.bootstrap, topic)


@contextmanager
def subject(properties: Mapping[str, str] | None = None) -> Iterator[Subject]:
    """A node in a scratch directory, gone at the end whatever happens."""
    with brokers.scratch() as home:
        made = Subject(home / "node", properties)
        try:
            yield made
        finally:
            made.node.kill()


def take_steady(
    found: Findings, of: Subject, part: str, line: str, size: float, idle_s: float, latency_s: float, rate_per_s: float
) -> None:
    """Memory, idle CPU and produce latency as they stand; let the node settle before."""
    found.add(part, line, IDLE_CPU, size, of.idle_percent(idle_s))
    found.add(part, line, RSS, size, of.rss_mb())
    # A host that is busy elsewhere for a second spoils one reading, seldom two of three.
    readings = [of.latencies_ms(rate_per_s, latency_s) for _ in range(READINGS)]
    for kind, share in ((P50, 0.5), (P99, 0.99)):
        found.add(part, line, kind, size, median(raw.percentile(measured, share) for measured in readings))
