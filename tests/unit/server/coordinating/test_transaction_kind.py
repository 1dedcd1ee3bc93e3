"""Transactions as a kind of coordinator: where their ids live, how their records are written and read."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from penstock.coordinators.decision import StateRecord
from penstock.kernels import read_header
from penstock.metadata.features import TRANSACTION_VERSION
from penstock.metadata.image import ClusterImage
from penstock.model.ids import ZERO_UUID, Epoch, Millis, Offset
from penstock.protocol.batch import read_records
from penstock.protocol.disk.metadata_brokers import RegisterBrokerRecord
from penstock.protocol.disk.transaction_records import TransactionLogKey, TransactionLogValue
from penstock.server.coordinating.records import encode_batch
from penstock.server.coordinating.transactions import TRANSACTION_READER, TransactionKind

KEY = bytes.fromhex("00000004636f7079")
EMPTY = bytes.fromhex("000100000000000003e800000000ea6000000000018bcfe56800ffffffffffffffff01000800000000000003e8")


class Settings:
    """As many partitions as Kafka has."""

    def number(self, name: str) -> int:
        return {"transaction.state.log.num.partitions": 50, "request.timeout.ms": 30_000}[name]


def kind() -> TransactionKind:
    settings: Any = Settings()
    return TransactionKind(settings, lambda: None, lambda: pytest.fail("nothing has ended"))


@pytest.mark.parametrize(("name", "home"), [("copy", 23), ("my-txn-0", 0)])
def test_ids_live_where_kafka_looks_for_them(name: str, home: int) -> None:
    assert kind().partition_of(name, kind().partitions_wanted()) == home


def test_records_are_kafkas_and_uncompressed() -> None:
    value = TransactionLogValue(
        producer_id=1000,
        previous_producer_id=1000,
        transaction_timeout_ms=60_000,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=1_700_000_000_000,
        transaction_start_timestamp_ms=-1,
    )
    state = StateRecord(TransactionLogKey(transactional_id="copy"), value, 1)
    batch = encode_batch([state], Millis(0), kind().codec())
    (record,) = read_records(memoryview(batch))
    assert (record.key, record.value) == (KEY, EMPTY)
    header = read_header(batch)
    assert (header.attributes, header.producer_id) == (0, -1)
    assert TRANSACTION_READER.read(KEY, EMPTY) == state
    assert TRANSACTION_READER.read(KEY, None) == StateRecord(TransactionLogKey(transactional_id="copy"), None)


def test_records_of_newer_releases_are_passed_over() -> None:
    assert TRANSACTION_READER.read(b"\0\7" + KEY[2:], EMPTY) is None
    assert TRANSACTION_READER.read(KEY, b"\0\2" + EMPTY[2:]) is None


def test_the_log_names_the_broker_that_transactions_wait_for_once(caplog: pytest.LogCaptureFixture) -> None:
    image, transactions = ClusterImage(), kind()
    knows = RegisterBrokerRecord.BrokerFeature(
        name=TRANSACTION_VERSION, min_supported_version=0, max_supported_version=2
    )
    caplog.set_level(logging.INFO, logger="penstock.transactions")

    def registered(broker_id: int, *features: RegisterBrokerRecord.BrokerFeature) -> None:
        record = RegisterBrokerRecord(broker_id=broker_id, incarnation_id=ZERO_UUID, features=list(features))
        image.apply(record, Offset(image.offset + 1), Epoch(1))
        transactions.follow(image, image.take_delta())

    registered(1, knows)
    assert caplog.messages == []
    registered(2)
    registered(1, knows)
    registered(2, knows)
    assert caplog.messages == [
        "Transactions wait for broker 2, whose release does not know them: upgrade it, or unregister it if it is gone.",
        "every broker knows transactions now",
    ]
