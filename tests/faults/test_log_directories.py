"""Disks that fill up under a running node: one directory goes offline alone, and the last one takes the node along."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from tests.compat.processes import free_ports, wait_for
from tests.compat.wire import Cursor, connect, request
from tests.faults.node import NodeProcess
from tests.patience import within

DESCRIBE_LOG_DIRS, FIRST_VERSION = 35, 1
ALL_TOPICS = b"\xff\xff\xff\xff"
KAFKA_STORAGE_ERROR = 56


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[list[Path]]:
    """Two file systems of 8 MB each."""
    mounts = [tmp_path / "disk1", tmp_path / "disk2"]
    for mount in mounts:
        mount.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "penstock-test", str(mount)], check=True)
    yield mounts
    for mount in mounts:
        subprocess.run(["umount", "-l", str(mount)], check=True)


@pytest.fixture
def node(tmp_path: Path, disks: list[Path]) -> Iterator[NodeProcess]:
    """A node with its metadata on a sound disk and a log directory on each of two small ones."""
    (admin_port,) = free_ports(1)
    running = NodeProcess(
        tmp_path / "data",
        f"log.dirs={disks[0]}/logs,{disks[1]}/logs",
        f"metadata.log.dir={tmp_path}/meta",
        f"penstock.admin.listener=127.0.0.1:{admin_port}",
    )
    running.admin = f"http://127.0.0.1:{admin_port}"  # type: ignore[attr-defined]
    running.start()
    running.create_topic("orders", 2)
    yield running
    running.kill()


def fill(node: NodeProcess, partition: int) -> int:
    """Produces until the disk is full; how many records were acknowledged."""
    producer = Producer(
        {"bootstrap.servers": node.address, "message.timeout.ms": within(5_000), "retries": 0,
         "enable.idempotence": False,
         "logger": None, "log_level": 0}
    )  # fmt: skip
    answers: list[int] = []

    def note(error: KafkaError | None, _: object) -> None:
        answers.append(0 if error is None else error.code())

    for _ in range(2_000):
        producer.produce("orders", bytes(10_000), partition=partition, on_delivery=note)
        if len(producer) > 20:
            producer.flush(within(10))
        if any(answers):
            break
    producer.flush(within(10))
    assert any(answers), "8 MB do not hold 20"
    return answers.count(0)


def told(node: NodeProcess, page: str) -> tuple[int, list[str]]:
    """(status, reasons) of a health page."""
    try:
        with urllib.request.urlopen(f"{node.admin}{page}", timeout=within(10)) as reply:  # type: ignore[attr-defined]
            return reply.status, json.loads(reply.read())["reasons"]
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())["reasons"]


def directory_errors(node: NodeProcess) -> dict[str, int]:
    """The error code of each log directory in DescribeLogDirs."""
    with connect(node.address) as connection:
        reply: Cursor = connection.call(request(DESCRIBE_LOG_DIRS, FIRST_VERSION, ALL_TOPICS))
    reply.one("i")
    errors = {}
    for _ in range(reply.one("i")):
        error, path = reply.one("h"), reply.text()
        assert path is not None
        errors[path] = error
        for _ in range(reply.one("i")):
            reply.text()
            for _ in range(reply.one("i")):
                reply.take("iqqb")
    return errors


def partition_on(node: NodeProcess, disk: Path) -> int:
    return next(index for index in (0, 1) if (disk / "logs" / f"orders-{index}").exists())


def test_a_full_disk_is_told_everywhere_and_the_other_goes_on(node: NodeProcess, disks: list[Path]) -> None:
    assert told(node, "/healthz") == (200, [])
    full = partition_on(node, disks[1])
    assert fill(node, full) > 0
    status, reasons = told(node, "/healthz")
    assert status == 503
    assert [reason for reason in reasons if f"{disks[1]}/logs is offline: " in reason]
    assert told(node, "/readyz") == (200, []), "it still serves what is on the other disk"
    assert directory_errors(node) == {f"{disks[0]}/logs": 0, f"{disks[1]}/logs": KAFKA_STORAGE_ERROR}
    admin = AdminClient({"bootstrap.servers": node.address})

    def leaders() -> dict[int, int]:
        partitions = admin.list_topics("orders", timeout=within(20)).topics["orders"].partitions
        return {index: partitions[index].leader for index in (0, 1)}

    # The controller hears of it with a heartbeat, and everybody else from the controller.
    wait_for("nobody to lead what was on it", lambda: leaders() == {full: -1, 1 - full: 1}, timeout_s=20)
    producer = Producer({"bootstrap.servers": node.address})
    producer.produce("orders", b"goes on", partition=1 - full)
    assert producer.flush(within(20)) == 0


def test_the_last_disk_takes_the_node_along(node: NodeProcess, disks: list[Path]) -> None:
    fill(node, 0)
    fill(node, 1)
    process = node._process
    assert process is not None
    wait_for("the node to end by itself", lambda: process.poll() is not None, timeout_s=30)
    assert process.returncode == 1
    (last,) = [line for line in node.words().splitlines() if line.startswith("penstock: ")]
    assert last.startswith("penstock: the node has stopped: every log directory is offline: ")
    assert "No space left on device" in last
