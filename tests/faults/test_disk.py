"""Torn tails, flipped bits, full and read-only disks: each gets its documented answer (docs/guides/durability.md)."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.cli.failures import UNHEALTHY
from penstock.kernels import scan_batches
from tests.compat.processes import free_ports, wait_for
from tests.faults.node import Ledger, NodeProcess, read_all
from tests.patience import within
from tests.walks.prometheus_text import samples


def fill(node: NodeProcess, topic: str, records: int, **settings: object) -> dict[tuple[int, int], bytes]:
    with Ledger(node.address, topic, 1, **settings) as ledger:
        wait_for("records", lambda: len(ledger.acknowledged) >= records, timeout_s=60)
        ledger.finish()
    return ledger.acknowledged


def segments(node: NodeProcess, topic: str) -> list[Path]:
    return sorted((node.directory / "node-1" / f"{topic}-0").glob("*.log"))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    running = NodeProcess(tmp_path / "data", "log.segment.bytes=1048576")
    running.start()
    yield running
    running.kill()


def test_a_torn_tail_is_cut_and_everything_before_it_stays(node: NodeProcess) -> None:
    node.create_topic("torn")
    written = fill(node, "torn", 2_000)
    node.kill()
    last = segments(node, "torn")[-1]
    with last.open("ab") as file:
        file.write(last.read_bytes()[:40])  # a header that a crash cut off
    node.start()
    assert read_all(node.address, "torn", [0]) == written
    again = fill(node, "torn", 100)
    assert min(offset for _, offset in again) == len(written), "offsets go on where the good records end"


def test_a_flipped_bit_above_the_recovery_point_cuts_the_log_there(node: NodeProcess) -> None:
    node.create_topic("flipped")
    written = fill(node, "flipped", 2_000, **{"batch.num.messages": 100})
    node.kill()
    last = segments(node, "flipped")[-1]
    data = bytearray(last.read_bytes())
    batches = scan_batches(data)
    position, header = batches[len(batches) // 2]
    data[position + 70] ^= 0x10
    last.write_bytes(data)
    node.start()
    kept = {key: value for key, value in written.items() if key[1] < header.base_offset}
    assert read_all(node.address, "flipped", [0]) == kept


def test_a_flipped_bit_in_a_sealed_segment_reaches_the_client_as_a_bad_checksum(node: NodeProcess) -> None:
    """The broker does not read what it serves; the checksum travels with the batch and the client finds out."""
    node.create_topic("sealed")
    fill(node, "sealed", 30_000)
    assert node.stop() == 0
    first = segments(node, "sealed")[0]
    data = bytearray(first.read_bytes())
    data[200] ^= 0x10
    first.write_bytes(data)
    node.start()
    with pytest.raises(KafkaException) as failure:
        read_all(node.address, "sealed", [0])
    assert failure.value.args[0].code() == KafkaError._BAD_MSG


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB of its own."""
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "penstock-test", str(mount)], check=True)
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def produce_until_refused(address: str, topic: str) -> tuple[int, int]:
    """(records acknowledged, error code that stopped it)."""
    producer = Producer(
        {"bootstrap.servers": address, "message.timeout.ms": within(1_500), "retries": 0, "enable.idempotence": False,
         "logger": None, "log_level": 0}
    )  # fmt: skip
    acknowledged, codes = 0, []

    def note(error: KafkaError | None, _: object) -> None:
        nonlocal acknowledged
        if error is None:
            acknowledged += 1
        else:
            codes.append(error.code())

    for _ in range(4_000):
        producer.produce(topic, bytes(10_000), on_delivery=note)
        producer.poll(0)
        if codes:
            break
        if len(producer) > 50:
            producer.flush(within(10))
    producer.flush(within(10))
    return acknowledged, codes[0] if codes else 0


def test_a_full_disk_takes_its_directory_offline_and_no_other(tmp_path: Path, small_disk: Path) -> None:
    node = NodeProcess(tmp_path / "data", f"log.dirs={tmp_path}/data/node-1,{small_disk}/logs", "num.partitions=1")
    node.start()
    try:
        for name in ("one", "two"):  # fewest replicas: one goes to each directory
            node.create_topic(name)
        on_small = next(name for name in ("one", "two") if (small_disk / "logs" / f"{name}-0").exists())
        other = "two" if on_small == "one" else "one"
        acknowledged, code = produce_until_refused(node.address, on_small)
        assert acknowledged > 0
        assert code in (KafkaError.KAFKA_STORAGE_ERROR, KafkaError._MSG_TIMED_OUT)
        assert len(fill(node, other, 200)) >= 200, "the other directory goes on"
        node.kill()
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        node.start()
        assert len(read_all(node.address, on_small, [0])) >= acknowledged, "with room again, everything is there"
    finally:
        node.kill()


def test_a_disk_is_told_of_before_it_is_full(tmp_path: Path, small_disk: Path) -> None:
    (admin,) = free_ports(1)
    directories = f"{tmp_path}/data/node-1,{small_disk}/logs"
    node = NodeProcess(tmp_path / "data", f"log.dirs={directories}", f"penstock.admin.listener=127.0.0.1:{admin}")
    node.start()
    try:
        assert told_free(admin, small_disk) > 0.5
        assert said(node, "cluster", "health") == (0, "healthy\n")
        (small_disk / "ballast").write_bytes(bytes(22 << 20))
        assert told_free(admin, small_disk) < 0.1
        code, words = said(node, "cluster", "health")
        assert code == UNHEALTHY
        assert f"disks are nearly full; a full one takes its replicas offline: {small_disk}/logs" in words
        code, words = said(node, "doctor")
        assert code == UNHEALTHY
        assert f"problem: {small_disk}/logs of broker 1 has" in words
        (small_disk / "ballast").unlink()
        assert said(node, "cluster", "health") == (0, "healthy\n")
    finally:
        node.kill()


def told_free(admin: int, disk: Path) -> float:
    """The share of a disk that is free, as the metrics tell."""
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=within(30)) as reply:
        page = samples(reply.read().decode())
    at = {"directory": f"{disk}/logs"}
    free, total = (
        next(each.value for each in page if each.name == f"penstock_log_directory_{word}_bytes" and each.labels == at)
        for word in ("free", "total")
    )
    return free / total


def said(node: NodeProcess, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "penstock.cli.main", *words, "-b", node.address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(60))
    return done.returncode, done.stdout


def test_a_read_only_directory_goes_offline_and_no_other(tmp_path: Path, small_disk: Path) -> None:
    node = NodeProcess(tmp_path / "data", f"log.dirs={tmp_path}/data/node-1,{small_disk}/logs", "num.partitions=1")
    node.start()
    try:
        for name in ("one", "two"):
            node.create_topic(name)
        on_small = next(name for name in ("one", "two") if (small_disk / "logs" / f"{name}-0").exists())
        other = "two" if on_small == "one" else "one"
        written = fill(node, on_small, 100)
        node.kill()
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        node.start()
        acknowledged, code = produce_until_refused(node.address, on_small)
        assert (acknowledged, code) == (0, KafkaError.KAFKA_STORAGE_ERROR) or code == KafkaError._MSG_TIMED_OUT
        assert len(fill(node, other, 200)) >= 200
        node.kill()
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        node.start()
        assert read_all(node.address, on_small, [0]) == written
    finally:
        node.kill()


def test_a_node_whose_only_disk_is_full_ends_with_1_and_says_so(tmp_path: Path, small_disk: Path) -> None:
    node = NodeProcess(tmp_path / "data", f"log.dirs={small_disk}/logs", "num.partitions=1")
    node.start()
    try:
        node.create_topic("one")
        acknowledged, _ = produce_until_refused(node.address, "one")
        assert acknowledged > 0
        assert node.ended() == 1, node.words()
        assert "penstock: the node has stopped: " in node.words()
    finally:
        node.kill()
