"""Reading what transactions wrote: committed records alone, beside all of them, with more or less of it aborted.

The reader is librdkafka's, for both brokers: it leaves out what the broker's list of aborted transactions names. Bytes
are those of the log that it went through, so that both readings of a topic are of the same bytes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from confluent_kafka import Consumer, TopicPartition

from bench.headline.calm import OF_COST
from bench.txn.producers import Place, Shape
from bench.txn.stage import Stage, Subject

ABORTED = (0.0, 0.1, 0.5)
LEVELS = ("read_uncommitted", "read_committed")
WRITERS = 16
GROUP_RATE, GROUP_CPU = "reading: throughput", "reading: broker CPU"
GROUP_KEPT = "reading: committed beside uncommitted"
_RECORDS, _BATCHES, _RECORD_BYTES = 16, 2, 1_000
_TRANSACTION_BYTES = _RECORDS * _BATCHES * _RECORD_BYTES
WAIT_S = 60.0


def measure(stage: Stage, subjects: Sequence[Subject]) -> None:
    with ExitStack() as stack:
        topics: dict[tuple[str, float], tuple[Place, int]] = {}
        for aborted in ABORTED:
            for subject in subjects:
                stage.say(f"{subject.title}: a topic with {aborted:.0%} aborted")
                place = stack.enter_context(stage.topic(subject, 1))
                topics[subject.name, aborted] = place, _fill(stage, place, aborted)
        for number in range(stage.settings.rounds):
            stage.say(f"reading, round {number + 1} of {stage.settings.rounds}")
            for aborted in ABORTED:
                for subject in subjects:
                    _round(stage, subject, *topics[subject.name, aborted], aborted)


def _fill(stage: Stage, place: Place, aborted: float) -> int:
    """Returns how many records are committed."""
    shape = Shape(record_bytes=_RECORD_BYTES, records=_RECORDS, batches=_BATCHES, aborted=aborted)
    # Every producer has the same number of them, so that the share of aborted ones is what it should be.
    each = stage.settings.read_megabytes * 1_000_000 // _TRANSACTION_BYTES // WRITERS // 10 * 10 or 10
    stage.fill(place, shape, WRITERS, each)
    return round(each * WRITERS * (1 - aborted)) * _RECORDS * _BATCHES


def _round(stage: Stage, subject: Subject, place: Place, committed: int, aborted: float) -> None:
    found = {}
    for level in LEVELS:
        everything = round(committed / (1 - aborted))
        wanted = committed if level == "read_committed" else everything

        def read(level: str = level, wanted: int = wanted) -> tuple[float, float]:
            return _read(subject, place, level, wanted)

        seconds, spent = stage.calm.sampled(read, OF_COST)
        size = everything * _RECORD_BYTES
        name = f"{level}, {aborted:.0%} aborted"
        found[level] = size / seconds / 1e6
        stage.rate(GROUP_RATE, name, "MB/s", subject.name, found[level])
        stage.cost(GROUP_CPU, name, "CPU-s/GB", subject.name, spent / size * 1e9)
    kept = found["read_committed"] / found["read_uncommitted"] * 100
    stage.rate(GROUP_KEPT, f"{aborted:.0%} aborted", "%", subject.name, kept)


def _read(subject: Subject, place: Place, level: str, wanted: int) -> tuple[float, float]:
    """(seconds, CPU seconds of the broker) from the first record to the last."""
    consumer = Consumer(
        {
            "bootstrap.servers": subject.address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "isolation.level": level,
            "check.crcs": False,
            # Else it rests for a second whenever 64 MB are queued, which a fast broker makes happen.
            "queued.max.messages.kbytes": 512 << 10,
            "fetch.queue.backoff.ms": 1,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(place.topic, 0, 0)])
        read = len(consumer.consume(1, timeout=WAIT_S))
        # Finding the leader and connecting are no part of it.
        began, used = time.perf_counter(), subject.cpu_s()
        while read < wanted:
            assert time.perf_counter() - began < WAIT_S, f"only {read} of {wanted} records came"
            read += sum(each.error() is None for each in consumer.consume(min(10_000, wanted - read), timeout=1.0))
        return time.perf_counter() - began, subject.cpu_s() - used
    finally:
        consumer.close()
