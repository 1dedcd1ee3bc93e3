"""Transactions in the test kit: they are on, faults reach them, and their time passes at once."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as ConfluentPartition

from penstock.blocking import Admin, Consumer, Producer
from penstock.client.errors import BrokerRefused, ClientError, TransactionAbortable, TransactionFenced
from penstock.model.errors import TRANSACTIONAL_ID_NOT_FOUND
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker, EmbeddedCluster, broker
from tests.patience import within

ORDERS = TopicPartition("orders", 0)


def committed(running: EmbeddedBroker | EmbeddedCluster, count: int) -> list[bytes | None]:
    """The first records that readers of committed ones see."""
    settings: dict[str, Any] = {"isolation_level": "read_committed", "offset_reset": "earliest"}
    with Consumer("orders", bootstrap_servers=running.bootstrap_servers, **settings) as consumer:
        return [record.value for _, record in zip(range(count), consumer, strict=False)]


def last_stable(running: EmbeddedBroker | EmbeddedCluster) -> int:
    with Admin(bootstrap_servers=running.bootstrap_servers) as admin:
        return admin.offsets({ORDERS: "latest"}, read_committed=True).checked()[ORDERS].offset


def test_a_transaction_times_out_in_no_time(penstock_broker: EmbeddedBroker) -> None:
    with Producer(penstock_broker.bootstrap_servers, transactional_id="shop") as producer:
        producer.begin()
        producer.send("orders", b"forgotten", partition=0).result(within(30))
        penstock_broker.advance(seconds=50)
        assert last_stable(penstock_broker) == 0, "its minute is not over"
        penstock_broker.advance(seconds=30)
        assert last_stable(penstock_broker) == 2
        with pytest.raises((TransactionFenced, TransactionAbortable)):
            producer.commit()
    with Producer(penstock_broker.bootstrap_servers, transactional_id="shop") as producer, producer.transaction():
        producer.send("orders", b"seen", partition=0)
    assert committed(penstock_broker, 1) == [b"seen"]


def test_an_id_expires_in_no_time(penstock_broker: EmbeddedBroker) -> None:
    with Admin(bootstrap_servers=penstock_broker.bootstrap_servers) as admin:
        with Producer(penstock_broker.bootstrap_servers, transactional_id="shop") as producer, producer.transaction():
            producer.send("orders", b"seen", partition=0)
        penstock_broker.advance(days=6)
        assert admin.describe_transaction("shop").state == "CompleteCommit"
        penstock_broker.advance(days=2)
        with pytest.raises(BrokerRefused) as refused:
            admin.describe_transaction("shop")
        assert refused.value.error is TRANSACTIONAL_ID_NOT_FOUND


def test_producer_ids_expire_in_no_time_but_not_with_a_transaction_open() -> None:
    week_ms = 7 * 24 * 3_600_000
    with (
        broker({"transaction.max.timeout.ms": week_ms}) as running,
        Admin(bootstrap_servers=running.bootstrap_servers) as admin,
    ):
        admin.create_topic("orders", 1)

        def known() -> list[bool]:
            """Of each producer that the partition remembers: whether it has a transaction open."""
            found = admin.describe_producers([ORDERS]).checked()[ORDERS]
            return sorted(each.transaction_start >= 0 for each in found)

        bootstrap = running.bootstrap_servers
        with (
            Producer(bootstrap) as plain,
            Producer(bootstrap, transactional_id="done") as done,
            Producer(bootstrap, transactional_id="open", transaction_timeout_ms=week_ms) as still_open,
        ):
            plain.send("orders", b"plain", partition=0).result(within(30))
            with done.transaction():
                done.send("orders", b"done", partition=0)
            still_open.begin()
            still_open.send("orders", b"open", partition=0).result(within(30))
            running.advance(hours=23)
            assert known() == [False, False, True]
            running.advance(hours=2)
            assert known() == [True]
            still_open.commit()
            running.advance(hours=25)
            assert known() == []


@pytest.mark.parametrize("code", ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"])
def test_what_passes_is_survived_by_a_whole_transaction(penstock_broker: EmbeddedBroker, code: str) -> None:
    apis = ("InitProducerId", "EndTxn", "TxnOffsetCommit", "FindCoordinator")
    for api in apis:
        penstock_broker.fail(api=api, code="COORDINATOR_NOT_AVAILABLE" if api == "FindCoordinator" else code, times=2)
    bootstrap = penstock_broker.bootstrap_servers
    with (
        Producer(bootstrap, transactional_id="shop") as producer,
        Consumer(
            "inputs", bootstrap_servers=bootstrap, group_id="g", offset_reset="earliest", auto_commit=False
        ) as reader,
    ):
        with Producer(bootstrap) as plain:
            plain.send("inputs", b"in", partition=0).result(within(30))
        while not (records := reader.poll(timeout_ms=100)):
            pass
        with producer.transaction():
            producer.send("orders", records[0].value, partition=0)
            producer.send_offsets(reader)
        assert reader.committed()[TopicPartition("inputs", 0)].offset == 1  # type: ignore[union-attr]
    assert committed(penstock_broker, 1) == [b"in"]
    assert [penstock_broker.faults_left(api) for api in apis] == [0] * len(apis)


@pytest.mark.parametrize(
    ("api", "code", "raised"),
    [
        ("EndTxn", "PRODUCER_FENCED", TransactionFenced),
        ("EndTxn", "TRANSACTION_ABORTABLE", TransactionAbortable),
        ("EndTxn", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", ClientError),
        ("Produce", "TRANSACTION_ABORTABLE", TransactionAbortable),
        ("Produce", "INVALID_PRODUCER_EPOCH", ClientError),
    ],
)
def test_what_does_not_pass_is_raised(
    penstock_broker: EmbeddedBroker, api: str, code: str, raised: type[ClientError]
) -> None:
    with Producer(penstock_broker.bootstrap_servers, transactional_id="shop") as producer:
        penstock_broker.fail(api=api, code=code)
        with pytest.raises(raised), producer.transaction():
            producer.send("orders", b"never seen", partition=0)
        assert penstock_broker.faults_left(api) == 0
        penstock_broker.clear_faults()


def test_a_reply_to_a_commit_that_is_lost_makes_no_second_one(penstock_broker: EmbeddedBroker) -> None:
    with Producer(penstock_broker.bootstrap_servers, transactional_id="shop") as producer:
        penstock_broker.disconnect(api="EndTxn", served=True)
        with producer.transaction():
            producer.send("orders", b"once", partition=0)
        with producer.transaction():
            producer.send("orders", b"twice", partition=0)
    assert committed(penstock_broker, 2) == [b"once", b"twice"]
    assert last_stable(penstock_broker) == 4


def test_time_and_faults_reach_the_transactions_of_a_cluster(penstock_cluster: EmbeddedCluster) -> None:
    for node in penstock_cluster.nodes.values():
        # Coordinators send markers to other nodes as requests, and do it again.
        node.fail(api="WriteTxnMarkers", code="NOT_LEADER_OR_FOLLOWER")
    bootstrap = penstock_cluster.bootstrap_servers
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic("orders", 6)
        with Producer(bootstrap, transactional_id="shop") as producer:
            with producer.transaction():
                for partition in range(6):
                    producer.send("orders", b"seen", partition=partition)
            assert committed(penstock_cluster, 6) == [b"seen"] * 6
            assert sum(node.faults_left("WriteTxnMarkers") for node in penstock_cluster.nodes.values()) == 1
            producer.begin()
            producer.send("orders", b"forgotten", partition=0).result(within(30))
            assert admin.describe_transaction("shop").state == "Ongoing"
            penstock_cluster.advance(minutes=2)
            with pytest.raises(ClientError):
                producer.commit()
        assert admin.describe_transaction("shop").state in ("CompleteAbort", "PrepareAbort", "Empty")
        penstock_cluster.advance(days=8)
        assert "shop" in admin.describe_transactions(["shop"]).failed


def test_the_requests_of_the_classic_protocol_can_be_refused(penstock_broker: EmbeddedBroker) -> None:
    """librdkafka adds partitions itself, and tries again what passes."""
    apis = ("AddPartitionsToTxn", "AddOffsetsToTxn")
    settings = {"bootstrap.servers": penstock_broker.bootstrap_servers, "log_level": 0}
    producer = ConfluentProducer({**settings, "transactional.id": "classic"})
    producer.init_transactions(within(30))
    for api in apis:
        penstock_broker.fail(api=api, code="CONCURRENT_TRANSACTIONS", times=2)
    reader = ConfluentConsumer({**settings, "group.id": "g"})
    producer.begin_transaction()
    producer.produce("orders", b"classic", partition=0)
    producer.flush(within(30))
    position = ConfluentPartition("orders", 0, 7)
    producer.send_offsets_to_transaction([position], reader.consumer_group_metadata(), within(30))
    producer.commit_transaction(within(30))
    assert [penstock_broker.faults_left(api) for api in apis] == [0, 0]
    assert committed(penstock_broker, 1) == [b"classic"]
    (found,) = reader.committed([ConfluentPartition("orders", 0)], timeout=within(30))
    assert found.offset == 7
    reader.close()
