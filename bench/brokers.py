"""The brokers that are measured: started in a scratch directory, watched, stopped whatever happens."""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.earlier import EarlierPenstock
from tests.compat import wire
from tests.compat.apache import jars
from tests.compat.apache.node import SHIPPED_JVM, ApacheKafka
from tests.compat.judged import PENSTOCK, Penstock
from tests.compat.node import Node
from tests.compat.processes import wait_for

APACHE, EARLIER, PENSTOCK_NODE, NULL = "apache", "earlier", "penstock", "null"
TITLES = {
    APACHE: f"Apache Kafka {jars.VERSION}",
    EARLIER: "Penstock before",
    PENSTOCK_NODE: "Penstock",
    NULL: "null broker",
}


class NullBroker(Node):
    """Answers and discards: the bound that no broker on this machine and in front of this client can pass."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "bench.null_broker", "--port", str(self.port)]

    def format(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)

    def format_command(self) -> list[str]:
        raise AssertionError("the null broker keeps nothing")


def make_node(name: str, home: Path, properties: Mapping[str, str] | None = None) -> Node:
    """A broker as its makers ship it: the server.properties for a single node, the JVM options of the start script."""
    if name == APACHE:
        return ApacheKafka(home, jvm=SHIPPED_JVM, properties=properties)
    if name == EARLIER:
        return EarlierPenstock(home, properties=properties)
    return Penstock(home, properties=properties) if name == PENSTOCK_NODE else NullBroker(home)


def available_brokers() -> tuple[list[str], list[str]]:
    """The brokers that can be measured here, and sentences about those that cannot."""
    names, remarks = [NULL], []
    if Path(PENSTOCK).exists():
        names.append(PENSTOCK_NODE)
    else:
        remarks.append("Penstock is not installed beside this interpreter, so it is not measured.")
    if jars.available():
        names.append(APACHE)
    else:
        remarks.append("Java or Maven is missing, so Apache Kafka is not measured and there are no ratios.")
    return [name for name in TITLES if name in names], remarks


@dataclass(frozen=True)
class Usage:
    """What a broker and its helper processes have used so far."""

    cpu_s: float
    rss_bytes: int


@dataclass(frozen=True)
class Running:
    name: str
    node: Node

    @property
    def bootstrap(self) -> str:
        return self.node.bootstrap

    def usage(self) -> Usage:
        root = psutil.Process(self.node.pid)
        family = [root, *root.children(recursive=True)]
        times = [process.cpu_times() for process in family]
        # CPU time of helpers that have ended is in the parent's account of its children.
        ended = root.cpu_times()
        cpu_s = sum(each.user + each.system for each in times) + ended.children_user + ended.children_system
        return Usage(cpu_s, sum(process.memory_info().rss for process in family))

    def pin(self, cores: list[int]) -> None:
        """Moves every thread of the broker to these cores; threads that it starts later follow."""
        for process in [psutil.Process(self.node.pid), *psutil.Process(self.node.pid).children(recursive=True)]:
            for thread in process.threads():
                psutil.Process(thread.id).cpu_affinity(cores)

    def new_topic(self, topic: str, partitions: int) -> None:
        # The null broker takes every topic for its own.
        if self.name != NULL:
            wire.create_topic(self.bootstrap, topic, partitions, {"file.delete.delay.ms": "100"})

    def drop_topic(self, topic: str) -> None:
        if self.name != NULL:
            wire.delete_topic(self.bootstrap, topic)

    def settle(self) -> None:
        """Returns when files of dropped topics are gone: giving up their cached pages takes a processor for a while."""
        wait_for(
            f"dropped topics of {self.name} to be gone",
            lambda: not any(self.node.data_dir.glob("*-delete")),
            timeout_s=60,
        )


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory for data, removed at the end."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def running(names: Sequence[str], properties: Mapping[str, str] | None = None) -> Iterator[list[Running]]:
    """All these brokers at once, each idle while another is measured, so that rounds can be interleaved."""
    with ExitStack() as stack:
        home = stack.enter_context(scratch())
        started = [Running(name, stack.enter_context(make_node(name, home / name, properties))) for name in names]
        yield started


def allow_many_files() -> None:
    """Raises the soft limit of descriptors to the hard one; ten thousand partitions need them."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def seconds_to_first_ack(node: Node, topic: str, batch: bytes) -> float:
    """Starts the node and returns the time until a produce to a topic that it must first create is acknowledged."""
    started = time.perf_counter()
    node.launch()
    wait_for(
        f"an acknowledged produce on {node.bootstrap}",
        lambda: _acknowledged(node, topic, batch),
        timeout_s=120,
        pause_s=0.002,
    )
    return time.perf_counter() - started


def _acknowledged(node: Node, topic: str, batch: bytes) -> bool:
    try:
        with wire.connect(node.bootstrap) as connection:
            # Asking for a topic creates it, as a producer's first question does.
            states = wire.partition_states(connection, [topic])
            if any(state.error for state in states):
                return False
            wire.produce(connection, topic, 0, batch, acks=-1)
            return True
    except (OSError, wire.BrokerError):
        return False
