"""Partitions that nobody uses: in topics of many, and in topics of one. And what one more topic costs beside them."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from bench.scale.found import RESTART, START, Findings, Kind, cpu_ms, cpu_us, took_ms
from bench.scale.plan import Plan
from bench.scale.subject import PROBE, Subject, subject, take_steady
from tests.compat import wire

PART = "partitions"
MANY, ONE = "topics of {} partitions", "topics of one partition"

CREATING = Kind("creating them all, until the answer", "s", "µs", 1e6, 0.2)
CREATING_CPU = Kind("creating them all, until each has its log", "s CPU", "µs", 1e6, 0.2)
STOP = Kind("clean stop", "s", "µs", 1e6, 0.3)
ONE_MORE = took_ms("one more topic, until it is led")
ONE_MORE_CPU = cpu_us("one more topic", 300.0)
ONE_MORE_BYTES = Kind("one more topic, bytes written", "bytes", "bytes", 1.0, 2_000.0)
METADATA_ONE = cpu_us("Metadata of one topic")
METADATA_ALL = cpu_ms("Metadata of all topics")
METRICS = cpu_ms("one page of metrics")
METRICS_STALL = took_ms("longest wait of a produce during pages of metrics", 20.0)
MAKING_STALL = took_ms("longest wait of a produce while a large topic is made", 30.0)
REMOVING_STALL = took_ms("longest wait of a produce while a large topic is removed", 30.0)
STALL_S = 2.0


def measure(plan: Plan, found: Findings, say: Callable[[str], None]) -> None:
    many = MANY.format(plan.partitions_a_topic)
    for size in plan.partitions:
        say(f"{size} partitions in topics of {plan.partitions_a_topic}")
        each = min(size, plan.partitions_a_topic)
        _measure_at(plan, found, many, size, {f"many-{number}": each for number in range(size // each)})
    for size in plan.topics:
        say(f"{size} topics of one partition")
        _measure_at(plan, found, ONE, size, {f"many-{number}": 1 for number in range(size)})


def _measure_at(plan: Plan, found: Findings, line: str, size: int, topics: dict[str, int]) -> None:
    with subject() as node:
        node.begin()
        began = time.perf_counter()
        before = node.cpu_s()
        node.create(topics)
        found.add(PART, line, CREATING, size, time.perf_counter() - began)
        node.settle()
        found.add(PART, line, CREATING_CPU, size, node.cpu_s() - before)
        take_steady(found, node, PART, line, size, plan.idle_s, plan.latency_s, plan.rate_per_s)
        _one_more(found, node, line, size)
        node.settle()
        _questions(found, node, line, size)
        _stalls(plan, found, node, line, size)
        began = time.perf_counter()
        node.node.stop()
        found.add(PART, line, STOP, size, time.perf_counter() - began)
        found.add(PART, line, START, size, node.start_s())
        node.node.kill()
        found.add(PART, line, RESTART, size, node.start_s())


def _one_more(found: Findings, node: Subject, line: str, size: int, repeats: int = 40) -> None:
    numbers = count()
    with wire.connect(node.bootstrap) as connection:

        def create() -> None:
            name = f"one-more-{next(numbers)}"
            node.create_with(connection, {name: 1})
            wire.partition_states(connection, [name])

        create()
        written = node.written_bytes()
        cpu = node.cpu_us_each(repeats, create)
        found.add(PART, line, ONE_MORE_CPU, size, cpu)
        found.add(PART, line, ONE_MORE_BYTES, size, (node.written_bytes() - written) / repeats)
        found.add(PART, line, ONE_MORE, size, node.median_ms(repeats, create))


def _questions(found: Findings, node: Subject, line: str, size: int) -> None:
    with wire.connect(node.bootstrap) as connection:
        wire.partition_states(connection, [PROBE])
        one = node.cpu_us_each(1_000, lambda: wire.partition_states(connection, [PROBE]))
        found.add(PART, line, METADATA_ONE, size, one)
        frame = wire.request(wire.METADATA, wire.METADATA_VERSION, b"\xff\xff\xff\xff")
        connection.call(frame)
        found.add(PART, line, METADATA_ALL, size, node.cpu_us_each(10, lambda: connection.call(frame)) / 1e3)
    found.add(PART, line, METRICS, size, node.cpu_us_each(3, node.metrics) / 1e3)


def _stalls(plan: Plan, found: Findings, node: Subject, line: str, size: int) -> None:
    """What a produce to another topic waits for at most, beside work that comes all at once."""

    def longest_ms(act: Callable[[], object]) -> float:
        def later() -> None:
            time.sleep(STALL_S / 4)
            act()

        with node.meanwhile(later):
            return max(node.latencies_ms(plan.rate_per_s, STALL_S))

    found.add(PART, line, METRICS_STALL, size, longest_ms(node.metrics))
    with wire.connect(node.bootstrap) as connection:
        making = longest_ms(lambda: node.create_with(connection, {"large": plan.large_topic}))
    found.add(PART, line, MAKING_STALL, size, making)
    node.settle()
    found.add(PART, line, REMOVING_STALL, size, longest_ms(lambda: node.delete("large")))
    node.settle()
