"""One partition whose log is large: starting with it, reading from its middle, finding a time, and retention."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable

from bench.scale.found import IDLE_CPU, RESTART, START, Findings, cpu_us, took_ms
from bench.scale.plan import Plan
from bench.scale.sparse_log import BATCH_BYTES, BATCHES_A_SEGMENT, SAME_TIME, STEP_MS, write_log
from bench.scale.subject import PROBE, Subject, subject, take_steady
from penstock.bench import raw
from tests.compat import wire

PART = "log"
LINE = "one partition"

FETCH = took_ms("fetch of 1 MB from anywhere in the log, p50")
BY_TIME = took_ms("offset of a time, p50")
RETENTION = cpu_us("one look of retention at the log", 30.0)
RETENTION_EVERY_MS = 20
FETCHES = 100
TAIL_BYTES = 50_000_000
"""Written through the node after the sealed segments: what a start after kill -9 has to look at again."""
FOREVER = {"log.retention.ms": "-1", "log.retention.hours": "-1"}


def measure(plan: Plan, found: Findings, say: Callable[[str], None]) -> None:
    for size in plan.log_gb:
        say(f"a log of {size} GB")
        with subject(FOREVER) as node:
            node.begin()
            node.node.stop()
            first_ms = int(time.time() * 1000) - 30 * 86_400_000
            end = 0
            if size:
                end = write_log(node.data_dir / f"{PROBE}-0", PROBE, size, first_ms)
            _measure_at(plan, found, node, size, end, first_ms)


def _measure_at(plan: Plan, found: Findings, node: Subject, size: int, end: int, first_ms: int) -> None:
    node.start_s()
    batch, records = raw.make_batch(1_000, 100_000, "none")
    raw.produce_load(node.bootstrap, PROBE, batch, records, acks=-1, seconds=20, bytes_max=TAIL_BYTES, lanes=1)
    node.node.kill()
    found.add(PART, LINE, RESTART, size, node.start_s())
    node.node.stop()
    found.add(PART, LINE, START, size, node.start_s())
    node.settle()
    take_steady(found, node, PART, LINE, size, plan.idle_s, plan.latency_s, plan.rate_per_s)
    _look_ups(found, node, size, end, first_ms)
    node.node.stop()
    node.node.properties["log.retention.check.interval.ms"] = str(RETENTION_EVERY_MS)
    node.node.format()
    node.start_s()
    idle = next(figure for figure in found if figure.part == PART and figure.kind == IDLE_CPU)
    more = node.idle_percent(plan.idle_s / 2) - idle.readings[size][-1]
    found.add(PART, LINE, RETENTION, size, more / 100 * RETENTION_EVERY_MS * 1e3)


def _look_ups(found: Findings, node: Subject, size: int, end: int, first_ms: int) -> None:
    """At places that the node has not been asked for before; the same places in every run."""
    places = random.Random(7)
    with wire.connect(node.bootstrap) as connection:

        def fetch() -> None:
            offset = places.randrange(max(end, 1))
            fetched = wire.fetch_reply(connection.call(wire.fetch_request(PROBE, 0, offset)))
            first = next(wire.batches(fetched.records))
            if not first.base_offset <= offset <= first.base_offset + first.last_offset_delta:
                raise AssertionError(f"a fetch at {offset} began at {first.base_offset}")

        def find() -> None:
            steps = max(end // SAME_TIME, 1)
            step = places.randrange(steps)
            offset = _offset_at(connection, first_ms + step * STEP_MS)
            if end and offset != step * SAME_TIME:
                raise AssertionError(f"time step {step} was found at {offset}")

        found.add(PART, LINE, FETCH, size, node.median_ms(FETCHES, fetch))
        found.add(PART, LINE, BY_TIME, size, node.median_ms(FETCHES, find))


def _offset_at(connection: wire.Connection, timestamp_ms: int) -> int:
    body = struct.pack(">ibi", -1, 0, 1) + wire.text(PROBE) + struct.pack(">iiiq", 1, 0, -1, timestamp_ms)
    reply = connection.call(wire.request(wire.LIST_OFFSETS, 5, body))
    reply.take("ii")
    reply.text()
    _partitions, _index, error, _timestamp, offset, _epoch = reply.take("iihqqi")
    if error:
        raise wire.BrokerError(f"ListOffsets: error {error}")
    return offset


assert BATCHES_A_SEGMENT % SAME_TIME == 0, "a time does not go over the end of a segment"
assert BATCH_BYTES * BATCHES_A_SEGMENT < 1 << 30, "a segment is no larger than the broker would let it be"
