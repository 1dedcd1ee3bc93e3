"""Transactions through Kafka's tools: every command of kafka-transactions, perf tests, console consumers."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterable

import pytest

from penstock import TransactionFenced
from penstock.blocking import Admin, Producer
from penstock.coordinators.home import home_partition
from penstock.model.ids import TopicPartition
from tests.compat.apache.tools import Outcome, Tools
from tests.compat.batches import Record, encode_batch
from tests.compat.conftest import NodeFactory
from tests.compat.processes import wait_for
from tests.compat.test_records import create
from tests.compat.wire import connect, create_topic, produce

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

HOUR_MS = 3_600_000
_numbers = itertools.count(1)


@pytest.fixture
def txn() -> str:
    """A transactional id that no other test uses."""
    return f"tool-txn-{next(_numbers)}"


def rows(outcome: Outcome) -> list[dict[str, str]]:
    """The table of a kafka-transactions command, each row by the names of its columns."""
    head, *lines = [line.split() for line in outcome.lines()]
    return [dict(itertools.zip_longest(head, line, fillvalue="")) for line in lines]


def transactions(tools: Tools, *arguments: str | int) -> list[dict[str, str]]:
    return rows(tools.run("kafka-transactions", *map(str, arguments)))


def of(table: Iterable[dict[str, str]], name: str) -> list[dict[str, str]]:
    return [row for row in table if row["TransactionalId"] == name]


def settled(bootstrap: str, topic: str, partition: int = 0) -> None:
    """Returns when no transaction is open in the partition."""
    tp = TopicPartition(topic, partition)
    with Admin(bootstrap_servers=bootstrap) as admin:

        def whole() -> bool:
            stable, end = (
                admin.offsets({tp: "latest"}, read_committed=committed).checked()[tp].offset
                for committed in (True, False)
            )
            return stable == end

        wait_for("an end of all transactions", whole, timeout_s=30)


def committed(tools: Tools, topic: str, *, partition: int = 0, timeout_ms: int = 5_000) -> list[str]:
    """What `kafka-console-consumer --isolation-level read_committed` shows until nothing comes any more."""
    shown = tools.run(
        "kafka-console-consumer", "--topic", topic, "--partition", str(partition), "--offset", "earliest",
        "--isolation-level", "read_committed", "--timeout-ms", str(timeout_ms),
    )  # fmt: skip
    return shown.lines()


# -- list, describe, describe-producers


def test_a_transaction_is_listed_and_described(tools: Tools, bootstrap: str, topic: str, txn: str) -> None:
    create_topic(bootstrap, topic, 2)
    with Producer(bootstrap, transactional_id=txn, transaction_timeout_ms=600_000) as producer:
        producer.begin()
        for partition, value in ((0, "a"), (0, "b"), (1, "c")):
            producer.send(topic, value, partition=partition)
        prepared = producer.prepare()
        pid, epoch = str(prepared.producer_id), str(prepared.producer_epoch)

        row = {"TransactionalId": txn, "Coordinator": "1", "ProducerId": pid, "TransactionState": "Ongoing"}
        assert of(transactions(tools, "list"), txn) == [row]
        assert transactions(tools, "list", "--transactional-id-pattern", f"{txn[:-1]}.+") != []
        assert transactions(tools, "list", "--transactional-id-pattern", txn) == [row]
        assert transactions(tools, "list", "--transactional-id-pattern", txn[:-1]) == []
        assert of(transactions(tools, "list", "--duration-filter", 1), txn) == [row]
        assert of(transactions(tools, "list", "--duration-filter", HOUR_MS), txn) == []

        (described,) = transactions(tools, "describe", "--transactional-id", txn)
        assert described["CoordinatorId"] == "1"
        assert described["TransactionalId"] == txn
        assert (described["ProducerId"], described["ProducerEpoch"]) == (pid, epoch)
        assert described["TransactionState"] == "Ongoing"
        assert described["TransactionTimeoutMs"] == "600000"
        age_ms = time.time() * 1_000 - int(described["CurrentTransactionStartTimeMs"])
        assert 0 < int(described["TransactionDurationMs"]) <= age_ms < HOUR_MS
        assert sorted(described["TopicPartitions"].split(",")) == [f"{topic}-0", f"{topic}-1"]

        for where, last, start in ((0, "1", "0"), (1, "0", "0")):
            for broker in ((), ("--broker-id", "1")):
                place = ("--topic", topic, "--partition", where, *broker)
                (found,) = transactions(tools, "describe-producers", *place)
                assert (found["ProducerId"], found["ProducerEpoch"]) == (pid, epoch)
                assert (found["LastSequence"], found["CurrentTransactionStartOffset"]) == (last, start)
                assert abs(int(found["LastTimestamp"]) - time.time() * 1_000) < HOUR_MS
        assert transactions(tools, "find-hanging", "--topic", topic, "--max-transaction-timeout", 0) == []

        producer.commit()
        settled(bootstrap, topic)
        settled(bootstrap, topic, 1)
    started_ms = described["CurrentTransactionStartTimeMs"]
    (described,) = wait_for(
        "the end to be written down",
        lambda: [
            row
            for row in transactions(tools, "describe", "--transactional-id", txn)
            if row["TransactionState"] == "CompleteCommit"
        ],
        timeout_s=30,
    )
    assert described["CurrentTransactionStartTimeMs"] == started_ms
    assert described["TopicPartitions"] == ""
    (found,) = transactions(tools, "describe-producers", "--topic", topic, "--partition", 0)
    assert found["CurrentTransactionStartOffset"] == "None"


def test_what_is_not_there_is_said_so(tools: Tools, bootstrap: str, topic: str) -> None:
    unknown = tools.fail("kafka-transactions", "describe", "--transactional-id", "nobody")
    assert "`nobody` failed because the ID could not be found" in unknown.stderr
    create_topic(bootstrap, topic)
    assert transactions(tools, "describe-producers", "--topic", topic, "--partition", 0) == []
    assert transactions(tools, "find-hanging", "--broker-id", 1) == []
    refused = tools.fail("kafka-transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert "Could not find any open transactions starting at offset 0" in refused.stderr
    bad = tools.fail("kafka-transactions", "list", "--transactional-id-pattern", "*")
    assert "INVALID_REGULAR_EXPRESSION" in bad.stderr


# -- find-hanging, abort


def left_behind(bootstrap: str, topic: str, producer_id: int, epoch: int, transactional_id: str) -> int:
    """A transactional batch of an hour ago that no coordinator was told of; returns its offset."""
    batch = encode_batch(
        [Record(b"hanging")],
        base_timestamp_ms=int(time.time() * 1_000) - HOUR_MS,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    with connect(bootstrap) as connection:
        return produce(connection, topic, 0, batch, transactional_id=transactional_id).base_offset


def test_a_hanging_transaction_is_found_and_aborted(make_node: NodeFactory) -> None:
    """Two of them: of a producer that no coordinator knows, and of one whose transaction is elsewhere."""
    bootstrap = make_node("hanging", properties={"transaction.partition.verification.enable": "false"}).bootstrap
    tools = Tools(bootstrap)
    for name in ("unknown", "elsewhere", "known"):
        create_topic(bootstrap, name)
        with Producer(bootstrap) as plain:
            plain.send(name, "before", partition=0)
    with Producer(bootstrap, transactional_id="busy", transaction_timeout_ms=600_000) as producer:
        producer.begin()
        producer.send("known", "open", partition=0)
        busy = producer.prepare()
    assert left_behind(bootstrap, "unknown", 77_777, 3, "lost") == 1
    assert left_behind(bootstrap, "elsewhere", busy.producer_id, busy.producer_epoch, "busy") == 1
    with Producer(bootstrap) as plain:
        for name in ("unknown", "elsewhere"):
            plain.send(name, "after", partition=0)

    everything = transactions(tools, "find-hanging", "--broker-id", 1)
    assert sorted((row["Topic"], row["Partition"], row["StartOffset"]) for row in everything) == [
        ("elsewhere", "0", "1"),
        ("unknown", "0", "1"),
    ]
    assert transactions(tools, "find-hanging", "--topic", "known", "--max-transaction-timeout", 0) == []
    assert transactions(tools, "find-hanging", "--topic", "unknown", "--max-transaction-timeout", 120) == []
    # The second form is meant for brokers that cannot be asked who has an open transaction.
    for name, pid, epoch, how in (
        ("unknown", 77_777, 3, ["--start-offset", "1"]),
        ("elsewhere", busy.producer_id, busy.producer_epoch, None),
    ):
        (found,) = transactions(tools, "find-hanging", "--topic", name, "--partition", 0)
        assert (found["ProducerId"], found["ProducerEpoch"]) == (str(pid), str(epoch))
        assert found["CoordinatorEpoch"] == "-1"
        assert committed(tools, name) == ["before"]
        named = ["--producer-id", str(pid), "--producer-epoch", str(epoch), "--coordinator-epoch", "0"]
        tools.run("kafka-transactions", "abort", "--topic", name, "--partition", "0", *(how or named))
        settled(bootstrap, name)
        assert committed(tools, name) == ["before", "after"]
    assert transactions(tools, "find-hanging", "--broker-id", 1) == []
    # The transaction that is known is none of this.
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.end_transaction(busy, commit=True)
    settled(bootstrap, "known")
    assert committed(tools, "known") == ["before", "open"]


def test_an_open_transaction_is_terminated(tools: Tools, bootstrap: str, topic: str, txn: str) -> None:
    create_topic(bootstrap, topic)
    with Producer(bootstrap, transactional_id=txn, transaction_timeout_ms=600_000) as producer:
        producer.begin()
        producer.send(topic, "never", partition=0)
        producer.flush()
        tools.run("kafka-transactions", "forceTerminateTransaction", "--transactionalId", txn)
        settled(bootstrap, topic)
        with pytest.raises(TransactionFenced):
            producer.commit()
    with Producer(bootstrap, transactional_id=txn) as producer, producer.transaction():
        producer.send(topic, "next", partition=0)
    settled(bootstrap, topic)
    assert committed(tools, topic) == ["next"]


# -- writing and reading


def test_the_perf_tools_write_and_read_transactions(tools: Tools, topic: str, txn: str) -> None:
    create(tools, topic, 2)
    count = 30_000
    summary = tools.run(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", str(count), "--record-size", "100",
        "--throughput", "30000", "--transactional-id", txn, "--transaction-duration-ms", "100",
    ).lines()[-1]  # fmt: skip
    assert summary.startswith(f"{count} records sent"), summary
    ends = [int(line.rsplit(":", 1)[1]) for line in tools.run("kafka-get-offsets", "--topic", topic).lines()]
    assert sum(ends) >= count + 4, "every transaction leaves a marker"
    read = tools.run(
        "kafka-consumer-perf-test", "--topic", topic, "--group", f"perf-{topic}", "--num-records", str(count),
        "--timeout", "30000", "--command-property", "isolation.level=read_committed",
    ).lines()[-1]  # fmt: skip
    assert int(read.split(",")[4]) == count, read
    assert of(transactions(tools, "list"), txn)[0]["TransactionState"] == "CompleteCommit"


def test_the_console_shows_what_is_committed(tools: Tools, bootstrap: str, topic: str, txn: str) -> None:
    create_topic(bootstrap, topic)
    with (
        Producer(bootstrap) as plain,
        Producer(bootstrap, transactional_id=f"{txn}-one", transaction_timeout_ms=600_000) as one,
        Producer(bootstrap, transactional_id=f"{txn}-two") as two,
    ):
        for step in (
            one.begin, (one, "1 committed"), two.begin, (two, "2 aborted"), (plain, "plain"), (one, "1 too"),
            one.commit, one.begin, (one, "1 aborted"), two.abort, two.begin, (two, "2 committed"), one.abort,
            two.commit, (plain, "last"), one.begin, (one, "open"), (plain, "behind it"),
        ):  # fmt: skip
            if isinstance(step, tuple):
                step[0].send(topic, step[1], partition=0)
                step[0].flush()
            else:
                step()
        shown = ["1 committed", "plain", "1 too", "2 committed", "last"]
        assert committed(tools, topic) == shown
        one.commit()
        settled(bootstrap, topic)
        assert committed(tools, topic) == [*shown, "open", "behind it"]
    everything = tools.run(
        "kafka-console-consumer", "--topic", topic, "--partition", "0", "--offset", "earliest",
        "--isolation-level", "read_uncommitted", "--max-messages", "9", "--timeout-ms", "20000",
    ).lines()  # fmt: skip
    assert everything == [
        "1 committed", "2 aborted", "plain", "1 too", "1 aborted", "2 committed", "last", "open", "behind it",
    ]  # fmt: skip


def test_the_formatter_reads_the_coordinators_log(tools: Tools, bootstrap: str, topic: str, txn: str) -> None:
    create_topic(bootstrap, topic)
    with Producer(bootstrap, transactional_id=txn) as producer, producer.transaction():
        producer.send(topic, "one", partition=0)
    settled(bootstrap, topic)
    shown = tools.run(
        "kafka-console-consumer", "--topic", "__transaction_state", "--partition", str(home_partition(txn, 50)),
        "--offset", "earliest", "--timeout-ms", "8000",
        "--formatter", "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter",
    )  # fmt: skip
    # The formatter puts no line ends between them.
    objects = re.sub(r"\}(?=\{\"key\":)", "}\n", shown.stdout.strip()).splitlines()
    found = [json.loads(each) for each in objects]
    values = [each["value"] for each in found if each["key"]["data"]["transactionalId"] == txn]
    assert [value["data"]["transactionStatus"] for value in values] == [0, 1, 2, 4]
    assert values[1]["data"]["transactionPartitions"] == [{"topic": topic, "partitionIds": [0]}]
