"""`penstock bench` against real nodes, as briefly as can be: what it prints, what it leaves behind. Never how fast."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from penstock.testing import broker, cluster
from tests.cli.command import Running, Said, penstock
from tests.compat.processes import wait_for
from tests.faults.counts import SOAKING, rounds
from tests.faults.node import let_pass
from tests.patience import within

QUICK = ("--quick", "--seconds", "0.1", "--format", "json")
QUANTILES = ["p50", "p90", "p99", "p99.9", "max"]


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    with broker() as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def other() -> Iterator[str]:
    with broker() as running:
        yield running.bootstrap_servers


def topics(address: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=within(30)).topics)


def good(said: Said) -> Any:
    assert said.code == 0, said.err
    return said.data


def figures(data: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for series in data["series"]:
        found.setdefault(series["group"], []).append(series["name"])
    return found


def test_produce_tells_all_that_one_must_know_to_judge_it(node: str) -> None:
    data = good(
        penstock("bench", "produce", "-b", node, *QUICK, "--client", "raw", "-c", "flush.messages=1", "-p", "2")
    )
    assert list(data) == [
        "format", "kind", "command", "client", "machine", "settings", "targets", "thrown_away", "latencies_counted",
        "series", "remarks",
    ]  # fmt: skip
    assert figures(data) == {"produce": ["records", "values"]}
    assert all(len(series["samples"][node]) == 1 and series["samples"][node][0] > 0 for series in data["series"])
    facts = data["targets"][node]
    assert (facts["broker"], facts["brokers"]) == ("Penstock", "1")
    assert facts["topic"] == "made for the run, 2 partitions, 1 replicas"
    assert facts["disk"] == "every batch is fsynced before its acknowledgement (flush.messages=1)"
    assert data["thrown_away"][node]["records"] > 0
    assert topics(node) == set()


@pytest.mark.parametrize("client", ["own", "raw"])
def test_at_a_rate_latency_is_measured_of_every_record(node: str, client: str) -> None:
    rate = ("--rate", "500", "--batch-bytes", "100", "--record-bytes", "100")
    data = good(penstock("bench", "produce", "-b", node, *QUICK, "--client", client, *rate))
    assert figures(data) == {"produce at 500 records/s": QUANTILES}
    assert data["latencies_counted"] == {"produce at 500 records/s": 50}
    medians = [series["medians"][node] for series in data["series"]]
    assert medians == sorted(medians)


def test_two_addresses_are_given_the_same_and_compared(node: str, other: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    options = ("--rounds", "2", "--client", "raw", "--clients", "2", "-z", "lz4", "--output", page)
    data = good(penstock("bench", "produce", "-b", node, "--versus", other, *QUICK, *options))
    assert set(data["targets"]) == {node, other}
    for series in data["series"]:
        assert [len(series["samples"][address]) for address in (node, other)] == [2, 2]
        assert series["ratio"] == pytest.approx(series["medians"][node] / series["medians"][other])
    assert {path.name for path in tmp_path.iterdir()} == {"page.md", "page.svg", "page-1.svg"}
    text = page.read_text()
    assert f"# penstock bench produce: {node} beside {other}" in text
    assert "![ratios](page.svg)" in text
    assert topics(node) | topics(other) == set()


@pytest.mark.parametrize("client", [("own", "2"), ("raw", "1")])
def test_consume_fills_a_topic_and_reads_it(node: str, client: tuple[str, str]) -> None:
    options = ("--client", client[0], "--clients", client[1], "--topic-bytes", "500000")
    data = good(penstock("bench", "consume", "-b", node, *QUICK, *options))
    assert figures(data) == {"consume": ["records", "values"]}
    assert data["targets"][node]["filled with"].endswith(" MB of values")
    assert all(series["medians"][node] > 0 for series in data["series"])
    assert topics(node) == set()


def test_a_topic_that_was_named_is_read_as_it_is_and_stays(other: str) -> None:
    producer = Producer({"bootstrap.servers": other, "log_level": 0})
    for number in range(100):
        producer.produce("kept", str(number))
    assert producer.flush(within(30)) == 0
    data = good(penstock("bench", "consume", "-b", other, *QUICK, "--topic", "kept"))
    assert "filled with" not in data["targets"][other]
    assert "kept" in topics(other)
    refused = penstock("bench", "consume", "-b", other, *QUICK, "--topic", "kept", "--partitions", "2")
    assert (refused.code, refused.out) == (2, "")
    assert penstock("topic", "delete", "kept", "--yes", "-b", other).code == 0


def test_end_to_end_sees_every_record_that_it_sent(node: str) -> None:
    said = penstock("bench", "e2e", "-b", node, *QUICK[:3], "--rate", "500", "--clients", "2")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert "PRODUCER TO CONSUMER AT 500 RECORDS/S" in lines
    assert [line.split()[0] for line in lines[-5:]] == QUANTILES
    assert topics(node) == set()


def test_a_cluster_is_measured_with_its_replicas_and_one_broker_is_none(node: str) -> None:
    refused = penstock("bench", "cluster", "-b", node, *QUICK)
    assert refused.code == 1
    assert "has one broker, so nothing is replicated" in refused.err
    with cluster(nodes=3) as three:
        data = good(penstock("bench", "cluster", "-b", three.bootstrap_servers, *QUICK, "--rate", "200"))
    assert figures(data) == {
        "produce, connections to all leaders": ["records", "values"],
        "produce, one connection, five in flight": ["records", "values"],
        "produce at 200 records/s": QUANTILES,
    }
    (facts,) = data["targets"].values()
    assert (facts["brokers"], facts["topic"]) == ("3", "made for the run, 4 partitions, 3 replicas")


def test_whoever_stops_it_finds_no_topic_of_its(node: str, tmp_path: Path) -> None:
    command = ("bench", "produce", "-b", node, "--seconds", "100", "--warm-up", "0s", "--rate", "10")
    with Running(*command, log=tmp_path / "log") as running:
        wait_for("the topic of the run", lambda: topics(node), timeout_s=60)
        assert running.stop(signal.SIGINT) == 130
        assert running.words.strip() == "penstock: stopped"
    assert topics(node) == set()


STOPPED = (130, -signal.SIGINT)
"""The same to a shell: `python -m` ends by the signal itself if that came while it ran code out of a string."""


def test_it_can_be_stopped_at_any_moment_of_its_start(node: str) -> None:
    command = ("bench", "produce", "-b", node, "--seconds", "100", "--warm-up", "0s", "--rate", "10")
    pipe, told = subprocess.PIPE, []
    for number in rounds(fast=6, full=30):
        after_s = number * (0.05 if SOAKING else 0.25)
        with subprocess.Popen(
            [sys.executable, "-m", "tests.cli.stoppable", *command], stdout=pipe, stderr=pipe, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "loaded\n"
            let_pass(after_s)
            child.send_signal(signal.SIGINT)
            out, words = child.communicate(timeout=within(60))
        told.append((after_s, child.returncode in STOPPED, out, words.strip()))
    assert [each for each in told if each[1:] != (True, "", "penstock: stopped")] == []
    assert topics(node) == set()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("produce", "-b", "127.0.0.1:1"), 5, "no broker answers at 127.0.0.1:1"),
        (("produce", "--topic", "nowhere"), 3, "topic 'nowhere' does not exist"),
        (("produce", "-X", "linger_mss=1"), 2, "no client has a setting 'linger_mss'"),
        (("produce", "--rate", "fast"), 2, "is no rate"),
        (("produce", "--versus", "here:there"), 2, "--versus"),
        (("produce", "--client", "raw", "--acks", "0"), 2, "counts acknowledgements"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_a_code(node: str, arguments: tuple[str, ...], code: int, words: str) -> None:
    said = penstock("bench", *arguments, *QUICK, *([] if "-b" in arguments else ["-b", node]))
    assert (said.code, said.out) == (code, "")
    assert words in said.err
