"""Consume, transform, produce with Apache Kafka's Java client: every record of the input once in the output."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from penstock.blocking import Admin, Consumer, Producer
from penstock.model.ids import TopicPartition
from tests.compat.apache.jars import tool_class_path
from tests.compat.apache.tools import Outcome, Tools, run_tool
from tests.compat.processes import wait_for
from tests.compat.test_transactions import settled
from tests.compat.wire import create_topic
from tests.patience import within

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

COUNT = 100
KILLED = 9


def filled(bootstrap: str, topic: str, *, in_transactions: bool) -> list[bytes]:
    """Two topics of two partitions, the input with numbers; between those of transactions are others, aborted."""
    for name in (topic, f"{topic}-out"):
        create_topic(bootstrap, name, 2)
    numbers = [b"%d" % number for number in range(COUNT)]
    if not in_transactions:
        with Producer(bootstrap) as producer:
            for number in numbers:
                producer.send(topic, number, key=number)
        return numbers
    with Producer(bootstrap, transactional_id=f"{topic}-source") as producer:
        for start in range(0, COUNT, 20):
            with producer.transaction():
                for number in numbers[start : start + 20]:
                    producer.send(topic, number, key=number)
            producer.begin()
            producer.send(topic, b"aborted", key=b"%d" % start)
            producer.abort()
    for partition in (0, 1):
        settled(bootstrap, topic, partition)
    return numbers


def copied(bootstrap: str, topic: str) -> list[bytes]:
    """What read_committed shows of the output, in any order."""
    tps = [TopicPartition(topic, partition) for partition in (0, 1)]
    for tp in tps:
        settled(bootstrap, *tp)
    found = []
    reading = {"bootstrap_servers": bootstrap, "offset_reset": "earliest", "isolation_level": "read_committed"}
    with Consumer(**reading) as consumer:
        consumer.assign(tps)
        ends = consumer.end_offsets(*tps)
        while [consumer.position(tp) for tp in tps] != [ends[tp] for tp in tps]:
            found += [record.value or b"" for record in consumer.poll(timeout_ms=100)]
    return sorted(found)


def progress(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        return {tp.partition: found.offset for tp, found in admin.group_offsets(group).items() if tp.topic == topic}


def copy(*words: str) -> Outcome:
    source = str(Path(__file__).with_name("Copier.java"))
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", logging, "-cp", tool_class_path(), source, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(120))
    return Outcome(words, done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_copier_that_dies_and_aborts_copies_every_record_once(bootstrap: str, topic: str, protocol: str) -> None:
    """The first dies in a transaction that has everything but its commit; the second takes its id and goes on."""
    numbers = filled(bootstrap, topic, in_transactions=True)
    words = (bootstrap, topic, f"{topic}-out", f"{topic}-copier", f"{topic}-group", protocol)
    died = copy(*words, "5")
    assert died.returncode == KILLED, died
    done = copy(*words, "0")
    assert done.returncode == 0, done
    committed, aborted = map(int, done.stdout.split())
    assert committed > aborted > 0
    assert copied(bootstrap, f"{topic}-out") == sorted(number + b"!" for number in numbers)
    with Admin(bootstrap_servers=bootstrap) as admin:
        ends = admin.offsets({TopicPartition(topic, index): "latest" for index in (0, 1)}).checked()
        reached = progress(bootstrap, f"{topic}-group", topic)
        (listed,) = [each for each in admin.list_transactions() if each.id == f"{topic}-copier"]
    # The last offset of the input is a marker, and a consumer is past it only when it has polled once more.
    assert all(ends[TopicPartition(topic, index)].offset - reached[index] <= 2 for index in (0, 1))
    assert listed.state == "CompleteCommit"


def test_kafkas_own_copier_copies_every_record_once(tools: Tools, bootstrap: str, topic: str) -> None:
    """One partition with the group's metadata and one without, as older applications commit; aborts at random."""
    numbers = filled(bootstrap, topic, in_transactions=False)  # it takes every offset for a record
    for partition, mode in ((0, ["--use-group-metadata"]), (1, [])):
        said = run_tool(
            "transactional-message-copier", "--broker-list", bootstrap, "--input-topic", topic,
            "--input-partition", str(partition), "--output-topic", f"{topic}-out", "--transaction-size", "7",
            "--transactional-id", f"{topic}-copier-{partition}", "--consumer-group", f"{topic}-group",
            "--enable-random-aborts", *mode, timeout_s=within(120),
        )  # fmt: skip
        last = json.loads(said.lines()[-1])
        assert last["remaining"] == 0, said
    wanted = sorted(numbers)
    assert wait_for("the whole copy", lambda: copied(bootstrap, f"{topic}-out") == wanted, timeout_s=30)
