"""What transactions leave on disk, Kafka's and ours, after the same ones: the same to kafka-dump-log.

Times and checksums differ, the order of topics in a transaction, and the topic ids that we add to its offsets.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock import GroupMetadata
from penstock.blocking import Admin, Producer
from penstock.model.ids import TopicPartition
from tests.compat.apache.node import ApacheKafka
from tests.compat.apache.tools import run_tool
from tests.compat.batches import Record, encode_batch
from tests.compat.conftest import target_class
from tests.compat.processes import wait_for
from tests.compat.test_own_transactions import BUMPING, CLASSIC, set_level
from tests.compat.wire import connect, create_topic, produce

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

ONE_EACH = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
TOPIC = "written"
TP = TopicPartition(TOPIC, 0)
LEVELS = {CLASSIC: "classic", BUMPING: "bumping"}


class Pair(NamedTuple):
    """Two data directories with the same transactions, both cleanly stopped."""

    ours: Path
    theirs: Path


@pytest.fixture(scope="module")
def pair(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    homes = []
    for kind, name in ((target_class(pytestconfig), "ours"), (ApacheKafka, "theirs")):
        with kind(tmp_path_factory.mktemp(name), properties=ONE_EACH) as node:
            create_topic(node.bootstrap, TOPIC, 1, {"segment.bytes": "1048576", "retention.ms": "-1"})
            for level in LEVELS:
                set_level(node.bootstrap, level)
                write(node.bootstrap, LEVELS[level])
            homes.append(node.data_dir)
    return Pair(*homes)


def write(bootstrap: str, kind: str) -> None:
    """Two producers whose transactions overlap, a segment in between, offsets, and one transaction that stays open.

    One step at a time: ends are waited for, so that everything lies in the same order in every log.
    """
    with (
        Admin(bootstrap_servers=bootstrap) as admin,
        Producer(bootstrap, transactional_id=f"{kind}-one") as one,
        Producer(bootstrap, transactional_id=f"{kind}-two") as two,
        Producer(bootstrap, transactional_id=f"{kind}-open", transaction_timeout_ms=900_000) as left_open,
    ):

        def put(producer: Producer, value: str) -> None:
            producer.send(TOPIC, value, partition=0, timestamp=1_700_000_000_000)
            producer.flush()

        def ended(producer: Producer, name: str, how: str) -> None:
            getattr(producer, how)()
            wanted = f"Complete{how.capitalize()}"
            wait_for(
                f"{wanted} of {name}",
                lambda: admin.describe_transaction(f"{kind}-{name}").state == wanted,
                timeout_s=30,
            )

        one.begin()
        put(one, "a")
        two.begin()
        put(two, "b")
        put(one, "c")
        one.send_offsets(GroupMetadata(f"{kind}-group"), {TP: 2})
        ended(one, "one", "commit")
        one.begin()
        put(one, "d")
        ended(two, "two", "abort")  # the oldest that is open is `one` by now
        two.begin()
        put(two, "e")
        fill(bootstrap)
        ended(one, "one", "abort")  # in another segment than its record
        one.begin()
        one.send_offsets(GroupMetadata(f"{kind}-group"), {TP: 5})
        ended(one, "one", "abort")
        ended(two, "two", "abort")
        left_open.begin()
        put(left_open, "f")
        left_open.prepare()


def fill(bootstrap: str) -> None:
    """A segment and a little more."""
    with connect(bootstrap) as connection:
        for _ in range(3):
            batch = encode_batch([Record(bytes(400_000))], base_timestamp_ms=1_700_000_000_000)
            produce(connection, TOPIC, 0, batch)


def dumped(data: Path, place: str, pattern: str, *options: str) -> list[str]:
    """The lines of kafka-dump-log on the files of a partition, without what has to differ."""
    files = sorted((data / f"{place}-0").glob(pattern))
    assert files, f"{place} has no {pattern}"
    said = run_tool("kafka-dump-log", *options, "--files", ",".join(map(str, files)), timeout_s=120)
    text = said.stdout.replace(str(data), "DATA")
    assert not re.search(r"isvalid: false|Exception|[Cc]ould not|Mismatch", text), text
    text = re.sub(r"\b(crc: )\d+", r"\1CRC", text)
    text = re.sub(r"\x00{100,}", "ZEROS", text)
    # Times of now; those of the records were chosen and must be the same.
    return re.sub(r"\b1(?!700000000000)[789]\d{11}\b", "NOW", text).splitlines()


def test_segments_and_control_batches_are_the_same(pair: Pair) -> None:
    ours, theirs = (dumped(data, TOPIC, "*.log", "--print-data-log") for data in pair)
    assert ours == theirs
    text = "\n".join(ours)
    assert text.count("endTxnMarker: COMMIT coordinatorEpoch: 0") == len(LEVELS)
    assert text.count("endTxnMarker: ABORT coordinatorEpoch: 0") == 3 * len(LEVELS)
    assert text.count("Dumping") > len(LEVELS)


def test_indexes_of_aborted_transactions_are_the_same(pair: Pair) -> None:
    ours, theirs = (dumped(data, TOPIC, "*.txnindex") for data in pair)
    assert ours == theirs
    assert len([line for line in ours if "lastStableOffset" in line]) == 3 * len(LEVELS)


def test_snapshots_of_producers_are_the_same(pair: Pair) -> None:
    ours, theirs = (dumped(data, TOPIC, "*.snapshot") for data in pair)
    assert sorted(ours) == sorted(theirs)
    assert len([line for line in ours if re.search(r"currentTxnFirstOffset: (OptionalLong\[)?\d", line)]) >= len(LEVELS)


def in_order(line: str) -> str:
    """Kafka writes the topics of a transaction in the order of a hash."""
    found = re.search(r'"transactionPartitions":(\[.*?\])(?=,"transactionLast)', line)
    if found is None:
        return line
    topics = sorted(json.loads(found[1]), key=lambda topic: topic["topic"])
    return line.replace(found[1], json.dumps(topics, separators=(",", ":")))


def test_the_coordinators_log_is_decoded_and_the_same(pair: Pair) -> None:
    ours, theirs = (dumped(data, "__transaction_state", "*.log", "--transaction-log-decoder") for data in pair)
    assert [in_order(line) for line in ours] == [in_order(line) for line in theirs]
    states = re.findall(r'"transactionStatus":(\d)', "\n".join(ours))
    assert set(states) == {"0", "1", "2", "3", "4", "5"}


def without_topic_ids(line: str) -> str:
    """We know a topic of a transaction's offsets by its id as well, as both do for other offsets."""
    return re.sub(r',"topicId":"[\w-]{22}"|\b(position|size|valueSize): \d+', "", line)


def test_the_offsets_of_transactions_are_decoded_and_the_same(pair: Pair) -> None:
    ours, theirs = (dumped(data, "__consumer_offsets", "*.log", "--offsets-decoder") for data in pair)
    assert [without_topic_ids(line) for line in ours] == [without_topic_ids(line) for line in theirs]
    assert "isTransactional: true" in "\n".join(ours)
    # The committed one and the aborted one, in each protocol.
    assert "\n".join(ours).count("endTxnMarker") == 2 * len(LEVELS)
