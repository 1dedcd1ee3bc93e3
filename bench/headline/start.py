"""A broker's beginning and its rest: command to first acknowledged produce, idle memory and CPU, many partitions."""

from __future__ import annotations

import itertools
import time

from bench import brokers
from bench.brokers import APACHE, NULL, Running
from bench.headline.stage import Stage
from bench.node import led_partitions
from penstock.bench import raw
from tests.compat import wire
from tests.compat.node import Node
from tests.compat.processes import wait_for

START = "start"
FIRST_ACK = "command to first acknowledged produce"
IDLE = "idle"
RESTART = "start after a clean stop until all are led"
PARTITIONS_A_TOPIC = 1_000


def measure(stage: Stage) -> None:
    """Every broker alone on the machine, formatted before the clock starts."""
    batch, _records = raw.make_batch(100, 100, "none")
    kept = [name for name in stage.names if name != NULL]
    rounds = stage.settings.rounds
    for number, name in itertools.product(range(rounds), kept):
        at = number * len(kept) + kept.index(name)
        stage.progress.step(at, rounds * len(kept), f"round {number + 1} of {rounds}: {stage.title(name)}")
        with brokers.scratch() as home:
            node = brokers.make_node(name, home / name)
            try:
                _once(stage, Running(name, node), node, batch)
            finally:
                node.kill()


def _once(stage: Stage, broker: Running, node: Node, batch: bytes) -> None:
    node.format()
    stage.cost(START, FIRST_ACK, "s", broker.name, brokers.seconds_to_first_ack(node, "first", batch))
    time.sleep(stage.settings.idle_s)
    usage = broker.usage()
    stage.cost(IDLE, "memory", "MB RSS", broker.name, usage.rss_bytes / 1e6)
    time.sleep(stage.settings.idle_s)
    share = (broker.usage().cpu_s - usage.cpu_s) / stage.settings.idle_s * 100
    stage.cost(IDLE, "CPU", "% of a core", broker.name, share)


def partitions_group(count: int) -> str:
    return f"{count:,} partitions"


def measure_partitions(stage: Stage) -> None:
    """Many partitions: making them, their memory, and the next start after a clean stop."""
    kept = [name for name in stage.names if name != NULL]
    if not stage.settings.kafka_partitions:
        kept = [name for name in kept if name != APACHE]
    for number, name in enumerate(kept):
        stage.progress.step(number, len(kept), f"{stage.settings.partitions:,} on {stage.title(name)}")
        with brokers.scratch() as home:
            node = brokers.make_node(name, home / name)
            try:
                _many(stage, Running(name, node), node)
            finally:
                node.kill()


def _many(stage: Stage, broker: Running, node: Node) -> None:
    count = stage.settings.partitions
    group = partitions_group(count)
    node.start()
    each = min(PARTITIONS_A_TOPIC, count)
    before = time.perf_counter()
    for number in range(count // each):
        wire.create_topic(node.bootstrap, f"many-{number}", each)
    stage.cost(group, "creating them", "s", broker.name, time.perf_counter() - before)
    time.sleep(stage.settings.idle_s)
    stage.cost(group, "memory", "MB RSS", broker.name, broker.usage().rss_bytes / 1e6)
    node.stop()
    before = time.perf_counter()
    node.launch()
    node.wait_until_serving(timeout_s=300)
    wait_for("all leaders", lambda: led_partitions(node.bootstrap) == count, timeout_s=300, pause_s=0.05)
    stage.cost(group, RESTART, "s", broker.name, time.perf_counter() - before)
    stage.cost(group, "memory after the start", "MB RSS", broker.name, broker.usage().rss_bytes / 1e6)
