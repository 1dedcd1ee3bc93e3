"""`penstock txn …` against a node: transactions are seen, those that hang are found and aborted; exit codes."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from penstock.blocking import Admin, Consumer, Producer
from penstock.model.ids import TopicPartition
from penstock.testing import broker
from tests.cli.command import Running, Said, penstock
from tests.hanging_transactions import UNVERIFIED, hang
from tests.patience import within


@cache
def later_ms() -> int:
    """Ten minutes after somebody first asked: tests are collected long before they run."""
    return time.time_ns() // 1_000_000 + 600_000


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A broker that takes transactional records without asking coordinators, as old ones did."""
    with broker({"num.partitions": 2, "log.retention.ms": -1, **UNVERIFIED}) as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def shop(node: str) -> Iterator[Producer]:
    """A producer that has committed a transaction and has the next one open."""
    with Producer(node, transactional_id="shop-1", transaction_timeout_ms=600_000) as producer:
        with producer.transaction():
            producer.send("orders", b"paid", partition=0)
        producer.begin()
        for partition in (0, 1):
            producer.send("orders", b"open", partition=partition).result(within(30))
        yield producer


def txn(node: str, *arguments: str, style: str = "json") -> Said:
    return penstock("txn", *arguments, "--format", style, "-b", node)


def test_transactions_are_listed_and_filtered(node: str, shop: Producer) -> None:
    (found,) = txn(node, "list", "--pattern", "shop-.*").data
    assert found == {
        "id": "shop-1",
        "producer_id": found["producer_id"],
        "state": "Ongoing",
        "coordinator": 1,
    }
    text = txn(node, "list", style="text").out.splitlines()
    assert text[0].split("  ")[0] == "TRANSACTIONAL ID"
    assert text[0].split() == ["TRANSACTIONAL", "ID", "PRODUCER", "STATE", "COORDINATOR"]
    assert ["shop-1", str(found["producer_id"]), "Ongoing", "1"] in [line.split() for line in text]
    assert [each["id"] for each in txn(node, "list", "--state", "ongoing").data] == ["shop-1"]
    assert txn(node, "list", "--producer-id", str(found["producer_id"])).data == [found]
    none = txn(node, "list", "--longer-than", "5m")
    assert (none.code, none.data, none.err) == (0, [], "no transactions\n")
    assert txn(node, "list", "--longer-than", "0s").data == [found]
    assert 'id: "shop-1"' in txn(node, "list", style="yaml").out


def test_longer_than_leaves_out_what_has_ended(node: str) -> None:
    with Producer(node, transactional_id="ended") as producer, producer.transaction():
        producer.send("orders", b"x", partition=0)
    assert "ended" not in [each["id"] for each in txn(node, "list", "--longer-than", "0s").data]
    assert [each["id"] for each in txn(node, "list", "--longer-than", "0s", "--state", "completecommit").data] == [
        "ended"
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("list", "--state", "sleeping"), "is not one of"),
        (("list", "--pattern", "("), "is no regular expression"),
        (("list", "--longer-than", "soon"), "is no time"),
        (("find-hanging", "--partition", "1"), "--partition goes with --topic"),
        (("abort", "--topic", "orders", "--partition", "0"), "say which: --start-offset N, or --producer-id N"),
    ],
)
def test_what_makes_no_sense_is_exit_code_2(node: str, arguments: tuple[str, ...], words: str) -> None:
    refused = txn(node, *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err


def test_a_transaction_is_described(node: str, shop: Producer) -> None:
    (found,) = txn(node, "describe", "shop-1").data
    assert found["partitions"] == [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]
    assert (found["state"], found["timeout_ms"], found["coordinator"]) == ("Ongoing", 600_000, 1)
    text = txn(node, "describe", "shop-1", style="text").out
    assert text.startswith("shop-1  (Ongoing)\n")
    assert "  partitions   orders:0,1\n" in text
    assert "  time-out     10 min 0 s\n" in text
    assert "  open since   20" in text


@pytest.mark.parametrize("command", ["describe", "fence"])
def test_an_id_that_is_not_there_is_exit_code_3_with_the_one_that_was_meant(
    node: str, shop: Producer, command: str
) -> None:
    refused = txn(node, command, "shop-2")
    assert refused.code == 3
    assert "transactional id 'shop-2' does not exist; did you mean shop-1?" in refused.err


def test_producers_of_a_partition_are_shown(node: str, shop: Producer) -> None:
    (listed,) = txn(node, "list", "--pattern", "shop-1").data
    found = {each["producer_id"]: each for each in txn(node, "producers", "orders", "0").data}
    assert found[listed["producer_id"]]["transaction_start"] == 2
    assert txn(node, "producers", "orders", "0", "--broker-id", "1").data == list(found.values())
    heading = txn(node, "producers", "orders", "0", style="text").out.splitlines()[0]
    assert heading.split("  ")[-1] == "OPEN FROM"
    assert txn(node, "producers", "order", "0").code == 3
    assert txn(node, "producers", "orders", "7").code == 3


def test_a_transaction_that_hangs_is_found_planned_and_aborted(node: str, shop: Producer) -> None:
    with Admin(bootstrap_servers=node) as admin:
        admin.create_topic("stuck", 2)
    with Producer(node) as plain:
        plain.send("stuck", b"before", partition=1).result(within(30))
        producer_id = hang(node, "stuck", b"never", b"seen", partition=1, age_ms=3_600_000)
        hang(node, "stuck", b"young", partition=0, age_ms=60_000)
        plain.send("stuck", b"behind", partition=1).result(within(30))

    everywhere = txn(node, "find-hanging")
    (found,) = [each for each in everywhere.data if each["topic"] == "stuck"]
    assert found == {
        "topic": "stuck",
        "partition": 1,
        "start_offset": 1,
        "producer_id": producer_id,
        "epoch": 3,
        "coordinator_epoch": -1,
        "last_timestamp": found["last_timestamp"],
        "transactional_id": None,
    }
    which = ("--topic", "stuck", "--partition", "1")
    for other in (which[:2], which, ("--broker-id", "1")):
        assert txn(node, "find-hanging", *other).data == [found]
    assert len(txn(node, "find-hanging", "--topic", "stuck", "--older-than", "30s").data) == 2
    none = txn(node, "find-hanging", "--topic", "stuck", "--older-than", "2h")
    assert (none.code, none.data, none.err) == (0, [], "no transaction hangs\n")
    text = txn(node, "find-hanging", *which, style="text")
    assert text.out.splitlines()[1].split()[:5] == ["stuck", "1", "1", str(producer_id), "3"]
    advice = "penstock txn abort --topic stuck --partition 1 --start-offset 1"
    assert advice in text.err

    def readable() -> list[bytes | None]:
        settings = {"bootstrap_servers": node, "isolation_level": "read_committed", "offset_reset": "earliest"}
        with Consumer(**settings) as consumer, Admin(bootstrap_servers=node) as admin:
            item = TopicPartition("stuck", 1)
            end = admin.offsets({item: "latest"}, read_committed=True).checked()[item].offset
            consumer.assign([item])
            values: list[bytes | None] = []
            while consumer.position(item) < end:
                values += [record.value for record in consumer.poll(timeout_ms=100)]
            return values

    assert readable() == [b"before"]
    abort = ("abort", *which, "--start-offset", "1")
    planned = txn(node, *abort)
    assert (planned.code, planned.data) == (0, {"executed": False, "transactions": [found]})
    assert "nothing was aborted in stuck-1: this is the plan, --yes carries it out" in planned.err
    assert readable() == [b"before"]
    done = txn(node, *abort, "--yes")
    assert (done.code, done.data["executed"]) == (0, True)
    assert readable() == [b"before", b"behind"]
    again = txn(node, *abort, "--yes")
    assert again.code == 1
    assert "no open transaction begins at offset 1; none is open there" in again.err


def test_one_that_does_not_hang_is_not_torn_apart(node: str, shop: Producer) -> None:
    abort = ("abort", "--topic", "orders", "--partition", "0", "--start-offset", "2", "--yes")
    refused = txn(node, *abort)
    assert (refused.code, refused.out) == (1, "")
    assert "`penstock txn fence shop-1` aborts it now" in refused.err
    (still,) = txn(node, "list", "--state", "ongoing").data
    assert still["id"] == "shop-1"


def test_force_ends_it_in_one_partition(node: str) -> None:
    with Admin(bootstrap_servers=node) as admin, Producer(node, transactional_id="torn") as producer:
        admin.create_topic("torn", 1)
        producer.begin()
        producer.send("torn", b"x", partition=0).result(within(30))
        (found,) = txn(node, "list", "--pattern", "torn").data
        by_producer = ("abort", "--topic", "torn", "--partition", "0", "--producer-id", str(found["producer_id"]))
        done = txn(node, *by_producer, "--force", "--yes")
        assert (done.code, done.data["transactions"][0]["transactional_id"]) == (0, "torn")
        assert admin.open_transactions([TopicPartition("torn", 0)]) == []
        producer.abort()


def test_fencing_prints_the_plan_first(node: str) -> None:
    with Producer(node, transactional_id="fenced") as producer:
        producer.begin()
        producer.send("orders", b"x", partition=1).result(within(30))
        planned = txn(node, "fence", "fenced")
        assert (planned.data["executed"], planned.data["transactions"][0]["state"]) == (False, "Ongoing")
        assert "nobody was fenced: this is the plan, --yes carries it out" in planned.err
        assert [each["id"] for each in txn(node, "list", "--pattern", "fenced", "--state", "ongoing").data] == [
            "fenced"
        ]
        done = txn(node, "fence", "fenced", "--yes", style="text")
        assert (done.code, done.err) == (0, "fenced fenced\n")
        assert done.out.splitlines()[1].split()[-1] == "orders:1"
        assert txn(node, "list", "--pattern", "fenced", "--state", "ongoing").data == []


def test_without_transactions_there_is_nothing_to_show(bootstrap: str) -> None:
    listed = penstock("txn", "list", "--pattern", "nobody", "-b", bootstrap)
    assert (listed.code, listed.out, listed.err) == (0, "", "no transactions\n")
    assert json.loads(penstock("txn", "find-hanging", "--format", "json", "-b", bootstrap).out) == []


@pytest.fixture(scope="module")
def held(node: str, shop: Producer) -> str:
    """A topic of one partition: 0 plain, 1 aborted, 2 its marker, 3 hanging, 4 plain."""
    with Admin(bootstrap_servers=node) as admin:
        admin.create_topic("held", 1)
        admin.alter_group_offsets("readers", {TopicPartition("held", 0): 1}).checked()
    with Producer(node) as plain, Producer(node, transactional_id="aborts") as other:
        plain.send("held", b"first", partition=0).result(within(30))
        other.begin()
        other.send("held", b"aborted", partition=0).result(within(30))
        other.abort()
        hang(node, "held", b"open")
        plain.send("held", b"last", partition=0, timestamp=later_ms()).result(within(30))
    return node


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ((), ["first", "aborted", "open", "last"]),
        (("--isolation", "read_uncommitted"), ["first", "aborted", "open", "last"]),
        (("--isolation", "read_committed"), ["first"]),
        (("--read-committed",), ["first"]),
        (("-X", "isolation.level=read_committed"), ["first"]),
        (
            ("-X", "isolation_level=read_committed", "--isolation", "read_uncommitted"),
            ["first", "aborted", "open", "last"],
        ),
    ],
)
def test_consume_shows_what_the_isolation_allows(held: str, options: tuple[str, ...], values: list[str]) -> None:
    said = penstock("consume", "held", "-e", "-f", "text", *options, "-b", held)
    assert (said.code, said.out.split()) == (0, values)


def test_the_end_of_a_time_span_is_not_waited_for_behind_an_open_transaction(held: str) -> None:
    where = f"@-1h:{later_ms()}"
    said = penstock("consume", "held", "-o", where, "-f", "text", "-b", held)
    assert said.out.split() == ["first", "aborted", "open"]
    said = penstock("consume", "held", "-o", where, "-f", "text", "--isolation", "read_committed", "-b", held)
    assert (said.code, said.out.split()) == (0, ["first"])


def test_tail_counts_records_and_not_markers(held: str, tmp_path: Path) -> None:
    with Running(
        "tail", "held", "-n", "1", "-f", "text", "--isolation", "read_committed", "-b", held, log=tmp_path / "l"
    ) as tail:
        tail.wait_to_say("first\n")
        assert tail.stop(signal.SIGINT) == 0
        assert tail.words.split() == ["first"]
    with Running("tail", "held", "-n", "3", "-f", "text", "-b", held, log=tmp_path / "m") as tail:
        tail.wait_to_say("last\n")
        assert tail.stop(signal.SIGINT) == 0
        assert tail.words.split() == ["open", "aborted", "last"]  # by their times


def test_topic_describe_shows_the_last_stable_offset_where_it_differs(held: str) -> None:
    (found,) = penstock("topic", "describe", "held", "--format", "json", "-b", held).data
    assert [(p["start"], p["end"], p["last_stable"]) for p in found["partitions"]] == [(0, 5, 3)]
    lines = penstock("topic", "describe", "held", "-b", held).out.splitlines()
    assert (lines[-2].split()[-2:], lines[-1].split()[-2:]) == (["END", "LSO"], ["5", "3"])
    with Admin(bootstrap_servers=held) as admin:
        admin.create_topic("calm", 1)
    assert "LSO" not in penstock("topic", "describe", "calm", "-b", held).out
    (calm,) = penstock("topic", "describe", "calm", "--format", "json", "-b", held).data
    assert calm["partitions"][0]["last_stable"] == 0


def test_lag_is_counted_to_where_the_group_can_read(held: str) -> None:
    def lag(*options: str) -> tuple[int, int]:
        (found,) = penstock("group", "lag", "readers", "--format", "json", *options, "-b", held).data
        return found["lag"], found["partitions"][0]["end"]

    assert lag() == (4, 5)
    assert lag("--read-committed") == (2, 3)


def test_health_and_doctor_name_what_holds_readers_back(held: str) -> None:
    health = penstock("cluster", "health", "--format", "json", "-b", held)
    assert health.code == 10
    (reason,) = health.data["reasons"]
    assert reason["kind"] == "late_transactions"
    (item,) = [each for each in reason["items"] if each.startswith("held-0 ")]
    assert "held-0 from offset 3 (producer " in item
    assert "no coordinator knows it, last written 1 h " in item
    doctor = penstock("doctor", "--format", "json", "-b", held)
    assert doctor.code == 10
    (found,) = [each for each in doctor.data["findings"] if each["kind"] == "late_transactions"]
    assert "held-0 from offset 3" in found["what"]
    assert "`penstock txn find-hanging`" in found["try"]
    (check,) = [each for each in doctor.data["checks"] if each["check"] == "transactions"]
    assert "held back" in check["outcome"]


def test_health_is_told_without_transactions_where_they_cannot_be_asked() -> None:
    with broker(UNVERIFIED) as running:
        node = running.bootstrap_servers
        with Admin(bootstrap_servers=node) as admin:
            admin.create_topic("stuck", 1)
        hang(node, "stuck")
        assert penstock("cluster", "health", "-b", node).code == 10
        running.fail(api="DescribeProducers", code="TOPIC_AUTHORIZATION_FAILED")
        assert penstock("cluster", "health", "-b", node).code == 0
        running.fail(api="DescribeProducers", code="TOPIC_AUTHORIZATION_FAILED", times=2)
        doctor = penstock("doctor", "--format", "json", "-b", node)
        (check,) = [each["outcome"] for each in doctor.data["checks"] if each["check"] == "transactions"]
        assert check == "brokers do not tell which are open"
        running.fail(api="WriteTxnMarkers", code="CLUSTER_AUTHORIZATION_FAILED")
        abort = ("abort", "--topic", "stuck", "--partition", "0", "--start-offset", "0", "--yes")
        refused = txn(node, *abort)
        assert (refused.code, refused.out) == (4, "")
        running.fail(api="ListTransactions", code="CLUSTER_AUTHORIZATION_FAILED")
        assert txn(node, "list").code == 4
        assert txn(node, *abort).code == 0
