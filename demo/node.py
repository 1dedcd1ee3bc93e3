"""A node, a million keyed records in and out through a foreign client; count, order and checksum verified.

The client is librdkafka (confluent-kafka), which knows nothing of Penstock. Exit code 1 when any check fails.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

TOPIC = "orders"
PARTITIONS = 6
KEYS = 10_000
START_DEADLINE_S = 30.0
CONSUME_DEADLINE_S = 120.0

console = Console(stderr=True)


@contextlib.contextmanager
def running_node() -> Iterator[tuple[str, float]]:
    """Starts `penstock dev --ephemeral` on a free port; gives its address and the seconds until it said it is ready."""
    began = time.monotonic()
    node = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli.main", "dev", "--ephemeral", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield _address(node), time.monotonic() - began
    finally:
        node.send_signal(signal.SIGTERM)
        try:
            code = node.wait(timeout=30)
        except subprocess.TimeoutExpired:
            node.kill()
            code = node.wait()
        if code:
            console.print(f"[red]the node ended with code {code}[/red]")


def _address(node: subprocess.Popen[str]) -> str:
    assert node.stdout is not None
    deadline = time.monotonic() + START_DEADLINE_S
    for line in node.stdout:
        found = re.search(r"bootstrap\S*\s+(\S+:\d+)", line)
        if found:
            return found[1]
        if time.monotonic() > deadline:
            break
    raise SystemExit("the node did not come up; its words are above")


def bar() -> Progress:
    return Progress(
        TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )


class Checks:
    """Sums that are equal on both sides exactly when the same records went in and came out, each key in order."""

    def __init__(self) -> None:
        self.count = 0
        self._digests = [hashlib.blake2b(digest_size=8) for _ in range(KEYS)]

    def take(self, key: int, value: bytes) -> None:
        self.count += 1
        self._digests[key].update(value)

    def checksum(self) -> str:
        whole = hashlib.blake2b(digest_size=12)
        for digest in self._digests:
            whole.update(digest.digest())
        return whole.hexdigest()


def produce(address: str, count: int) -> tuple[Checks, float]:
    checks, failures = Checks(), []
    producer = Producer({
        "bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5, "compression.type": "lz4",
        "queue.buffering.max.messages": 200_000,
    })  # fmt: skip

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    began = time.monotonic()
    with bar() as progress:
        task = progress.add_task("produce", total=count)
        for number in range(count):
            key = number * 7919 % KEYS
            value = b'{"order": %d, "customer": %d, "amount": %d}' % (number, key, number * 31 % 9973)
            checks.take(key, value)
            while True:
                try:
                    producer.produce(TOPIC, value, key=b"%d" % key, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 10_000 == 0:
                producer.poll(0)
                progress.update(task, completed=number)
        producer.flush()
        progress.update(task, completed=count)
    if failures:
        raise SystemExit(f"{len(failures)} records were not delivered: {failures[0]}")
    return checks, time.monotonic() - began


def consume(address: str, count: int) -> tuple[Checks, bool, float]:
    """Reads everything by assignment; also whether every partition's offsets ran without a gap."""
    checks, positions, gapless = Checks(), [0] * PARTITIONS, True
    consumer = Consumer({
        "bootstrap.servers": address, "group.id": "demo", "enable.auto.commit": False, "auto.offset.reset": "earliest",
        "fetch.message.max.bytes": 4 << 20,
    })  # fmt: skip
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    began = time.monotonic()
    with bar() as progress:
        task = progress.add_task("consume", total=count)
        while checks.count < count and time.monotonic() - began < CONSUME_DEADLINE_S:
            for record in consumer.consume(10_000, timeout=1.0):
                if record.error():
                    raise KafkaException(record.error())
                partition = record.partition()
                gapless = gapless and record.offset() == positions[partition]
                positions[partition] = record.offset() + 1
                checks.take(int(record.key()), record.value())
            progress.update(task, completed=checks.count)
    consumer.close()
    return checks, gapless, time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    count = parser.parse_args().records
    console.print("[bold]Penstock demo[/bold]: a node, and a foreign client that takes it for Apache Kafka")
    with running_node() as (address, ready_s):
        console.print(f"   node  ready at {address} after {ready_s:.2f} s")
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        sent, produce_s = produce(address, count)
        read, gapless, consume_s = consume(address, count)
    verdicts = [
        ("count", f"{read.count:,} of {sent.count:,}", read.count == sent.count),
        ("order", "every key in the order it was sent", read.checksum() == sent.checksum()),
        ("offsets", f"no gap in {PARTITIONS} partitions", gapless),
        ("checksum", read.checksum(), read.checksum() == sent.checksum()),
    ]
    print()
    for name, words, good in verdicts:
        print(f"  {'ok  ' if good else 'FAIL'}  {name:<9} {words}")
    print(f"\n  produced {count / produce_s:>9,.0f} records/s (idempotent, acks=all, lz4; nothing fsynced per record)")
    print(f"  consumed {count / consume_s:>9,.0f} records/s on {os.cpu_count()} cores shared with the client\n")
    print("  Next:  .venv/bin/penstock dev            and then, in another terminal,")
    print("         .venv/bin/penstock topic create clicks -p 6\n")
    return 0 if all(good for _, _, good in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
