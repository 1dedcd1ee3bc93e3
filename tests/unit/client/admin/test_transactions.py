"""The Admin about transactions: list, describe, fence, find those that hang and abort them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import blocking
from penstock.client.admin import Admin, OpenTransaction, ProducerInfo, TransactionInfo, TransactionListing
from penstock.client.admin.session import TRANSIENT
from penstock.client.errors import BadSetting, BrokerRefused, ClientError, TransactionFenced
from penstock.client.producer import Producer
from penstock.model.errors import (
    INVALID_TXN_STATE,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_NOT_FOUND,
    UNSUPPORTED_VERSION,
)
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker, EmbeddedCluster, broker
from tests.hanging_transactions import UNVERIFIED, hang
from tests.patience import within

ORDERS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": 2, **UNVERIFIED}) as running:
        yield running


def run(node: EmbeddedBroker, work: Any) -> Any:
    async def main() -> Any:
        async with Admin(bootstrap_servers=node.bootstrap_servers, retry_backoff_ms=5) as admin:
            return await asyncio.wait_for(work(admin), within(60))

    return asyncio.run(main())


async def ends(admin: Admin, item: TopicPartition) -> tuple[int, int]:
    """(last stable offset, high watermark)"""
    stable = (await admin.offsets({item: "latest"}, read_committed=True)).checked()[item].offset
    return stable, (await admin.offsets({item: "latest"})).checked()[item].offset


def test_an_open_transaction_is_listed_and_described_with_its_partitions(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> None:
        async with Producer(node.bootstrap_servers, transactional_id="shop-1", transaction_timeout_ms=40_000) as shop:
            async with shop.transaction():
                await shop.send("orders", b"first", partition=0)
            (done,) = await admin.list_transactions(pattern="shop-[0-9]")
            assert (done.id, done.coordinator, done.state) == ("shop-1", 1, "CompleteCommit")
            finished = await admin.describe_transaction("shop-1")
            assert finished.partitions == []
            await shop.begin()
            for partition in (1, 0):
                await shop.send("orders", b"open", partition=partition)
            found = await admin.describe_transaction("shop-1")
            assert found == TransactionInfo(
                "shop-1", 1, "Ongoing", done.producer_id, found.epoch, 40_000, found.started_ms, ORDERS
            )
            assert found.started_ms is not None
            assert found.epoch > finished.epoch - 1
            open_ones = await admin.open_transactions(ORDERS)
            assert [(each.transactional_id, each.hanging, each.started_ms) for each in open_ones] == [
                ("shop-1", False, found.started_ms)
            ] * 2
            assert [(each.topic, each.partition) for each in open_ones] == ORDERS
            await shop.abort()
            assert await admin.open_transactions(ORDERS) == []

    run(node, work)


def test_listing_filters_by_state_producer_age_and_pattern(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> None:
        async with (
            Producer(node.bootstrap_servers, transactional_id="filter-open") as one,
            Producer(node.bootstrap_servers, transactional_id="filter-done") as other,
        ):
            await one.begin()
            await one.send("orders", b"x", partition=0)
            async with other.transaction():
                await other.send("orders", b"y", partition=0)
            listed = {each.id: each for each in await admin.list_transactions(pattern="filter-.*")}
            assert {name: each.state for name, each in listed.items()} == {
                "filter-open": "Ongoing",
                "filter-done": "CompleteCommit",
            }

            async def names(**filters: Any) -> list[str]:
                return [each.id for each in await admin.list_transactions(**filters) if each.id in listed]

            assert await names(states=["Ongoing"]) == ["filter-open"]
            assert await names(producer_ids=[listed["filter-done"].producer_id]) == ["filter-done"]
            assert await names(states=["Ongoing"], longer_than_ms=600_000) == []
            assert await names(pattern="filter-o.*") == ["filter-open"]
            assert await names(pattern="filter") == []
            with pytest.raises(BadSetting, match="no state 'Sleeping'"):
                await admin.list_transactions(states=["Sleeping"])
            with pytest.raises(BadSetting, match="no regular expression"):
                await admin.list_transactions(pattern="(")
            await one.abort()

    run(node, work)


def test_an_id_that_nobody_has_used_is_not_found_and_the_others_are(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> None:
        async with Producer(node.bootstrap_servers, transactional_id="known") as producer, producer.transaction():
            await producer.send("orders", b"x", partition=0)
        results = await admin.describe_transactions(["known", "unknown"])
        assert list(results.done) == ["known"]
        assert results.failed["unknown"].error is TRANSACTIONAL_ID_NOT_FOUND
        assert "transactional id 'unknown' does not exist" in str(results.failed["unknown"])

    run(node, work)


def test_fencing_aborts_what_is_open_and_stops_its_producer(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> None:
        async with Producer(node.bootstrap_servers, transactional_id="zombie") as producer:
            await producer.begin()
            await producer.send("orders", b"never seen", partition=0)
            before = await admin.describe_transaction("zombie")
            fenced = (await admin.fence_producers(["zombie"])).checked()["zombie"]
            assert (fenced.producer_id, fenced.epoch > before.epoch) == (before.producer_id, True)
            assert (await admin.describe_transaction("zombie")).state in ("Empty", "CompleteAbort")
            with pytest.raises(TransactionFenced):
                await producer.commit()
        assert await admin.open_transactions(ORDERS) == []

    run(node, work)


def test_one_that_hangs_is_told_from_one_that_is_open_and_only_it_is_aborted(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> None:
        await admin.create_topic("stuck", 2)
        item = TopicPartition("stuck", 0)
        async with Producer(node.bootstrap_servers) as plain:
            await plain.send("stuck", b"before", partition=0)
        hanging = await asyncio.to_thread(hang, node.bootstrap_servers, "stuck", b"a", b"b", age_ms=3_600_000)
        async with Producer(node.bootstrap_servers, transactional_id="healthy") as healthy:
            await healthy.begin()
            await healthy.send("stuck", b"c", partition=0)
            first, second = await admin.open_transactions([item, TopicPartition("stuck", 1)])
            assert first == OpenTransaction("stuck", 0, 1, hanging, 3, -1, first.last_timestamp)
            assert (first.hanging, second.hanging, second.transactional_id) == (True, False, "healthy")
            assert [each.start_offset for each in await admin.open_transactions([item], broker_id=1)] == [1, 3]
            for wrong in ({"start_offset": 2}, {"producer_id": hanging + 1}):
                with pytest.raises(BrokerRefused, match=r"no open transaction .*offset 1 \(producer") as refused:
                    await admin.abort_transaction(item, **wrong)
                assert refused.value.error is INVALID_TXN_STATE
            assert await ends(admin, item) == (1, 4)
            aborted = await admin.abort_transaction(item, start_offset=1)
            assert isinstance(aborted, ProducerInfo)
            assert aborted.producer_id == hanging
            assert await ends(admin, item) == (3, 5)
            await healthy.commit()
        assert await ends(admin, item) == (6, 6)
        with pytest.raises(BrokerRefused, match="none is open there"):
            await admin.abort_transaction(item, producer_id=hanging)

    run(node, work)


def test_a_transaction_is_named_in_one_way(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> None:
        with pytest.raises(ValueError, match="start_offset or by producer_id"):
            await admin.abort_transaction(ORDERS[0], start_offset=1, producer_id=2)
        with pytest.raises(ValueError, match="start_offset or by producer_id"):
            await admin.abort_transaction(ORDERS[0])

    run(node, work)


def test_brokers_that_load_are_asked_again(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> list[TransactionListing]:
        for api in ("ListTransactions", "DescribeTransactions", "InitProducerId"):
            node.fail(api=api, code="COORDINATOR_LOAD_IN_PROGRESS", times=2)
        (await admin.fence_producers(["loading"])).checked()
        (await admin.describe_transactions(["loading"])).checked()
        return await admin.list_transactions(pattern="loading")

    (listed,) = run(node, work)
    assert (listed.id, listed.state) == ("loading", "Empty")
    assert run(node, lambda admin: admin.describe_transaction("loading")).started_ms is None
    assert [node.faults_left(api) for api in ("ListTransactions", "DescribeTransactions", "InitProducerId")] == [0] * 3


def test_a_filter_that_a_broker_does_not_know_is_not_left_out(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> None:
        link = await admin._view.link(1)
        link.versions[66] = (0, 0)
        assert isinstance(await admin.list_transactions(states=["Ongoing"]), list)
        for wanted, words in ({"longer_than_ms": 1}, "how long"), ({"pattern": "x"}, "a pattern"):
            with pytest.raises(ClientError, match=words) as refused:
                await admin.list_transactions(**wanted)
            assert refused.value.error is UNSUPPORTED_VERSION
            assert refused.value.error not in TRANSIENT

    run(node, work)


def test_the_coordinators_of_a_whole_cluster_are_asked(penstock_cluster: EmbeddedCluster) -> None:
    names = [f"worker-{number}" for number in range(8)]

    async def work(admin: Admin) -> None:
        await admin.create_topic("orders", 3)
        (await admin.fence_producers(names)).checked()
        listed = await admin.list_transactions()
        assert [each.id for each in listed] == names
        assert len({each.coordinator for each in listed}) > 1
        described = (await admin.describe_transactions(names)).checked()
        assert {each.id: each.coordinator for each in listed} == {
            name: info.coordinator for name, info in described.items()
        }

    async def main() -> None:
        async with Admin(bootstrap_servers=penstock_cluster.bootstrap_servers) as admin:
            await work(admin)

    asyncio.run(main())


def test_the_blocking_twin_does_the_same(node: EmbeddedBroker) -> None:
    with blocking.Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        admin.fence_producers(["twin"]).checked()
        assert [each.id for each in admin.list_transactions(pattern="twin")] == ["twin"]
        assert admin.describe_transaction("twin").state == "Empty"
        assert list(admin.describe_transactions(["twin"]).done) == ["twin"]
        admin.create_topic("twin", 1)
        producer_id = hang(node.bootstrap_servers, "twin")
        (found,) = admin.open_transactions([TopicPartition("twin", 0)])
        assert found.hanging
        assert admin.abort_transaction(TopicPartition("twin", 0), producer_id=producer_id).producer_id == producer_id
        assert admin.open_transactions([TopicPartition("twin", 0)]) == []


def test_a_producer_id_is_handed_to_another_process_and_whose_records_are_committed_is_told(
    node: EmbeddedBroker,
) -> None:
    async def work(admin: Admin) -> None:
        (begun,) = (await admin.begin_producers({"handed": None}, transaction_timeout_ms=40_000)).checked().values()
        producer = Producer(node.bootstrap_servers, transactional_id="handed")
        with pytest.raises(ClientError, match="there is no transaction"):
            producer.send("handed", b"too early")
        producer.adopt(begun, 2)
        assert producer.producer_epoch == begun
        with pytest.raises(ClientError, match=r"adopt\(\) cannot be now"):
            producer.adopt(begun, 2)
        for value, commits in ((b"1", True), (b"2", False), (b"3", True)):
            await producer.begin()
            producer.send("handed", value, partition=0)
            await producer.flush()
            await (producer.commit() if commits else producer.abort())
        told = await admin.describe_transaction("handed")
        assert (told.producer_id, told.timeout_ms) == (begun.producer_id, 40_000), "nobody else has begun"
        await producer.close()
        span = await admin.committed_batches(TopicPartition("handed", 0), 0, 6)
        assert [(each.base_offset, each.producer_epoch) for each in span.batches] == [
            (0, begun.epoch),
            (4, begun.epoch + 2),
        ]
        assert span.aborted == {(begun.producer_id, 2)}

    run(node, work)


def test_who_names_its_epoch_fences_nobody_who_has_begun_since(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> None:
        first = (await admin.begin_producers({"named": None}, transaction_timeout_ms=1_000)).checked()["named"]
        again = (await admin.begin_producers({"named": first}, transaction_timeout_ms=1_000)).checked()["named"]
        assert again == (first.producer_id, first.epoch + 1)
        other = (await admin.begin_producers({"named": None}, transaction_timeout_ms=1_000)).checked()["named"]
        refused = (await admin.begin_producers({"named": again}, transaction_timeout_ms=1_000)).failed["named"]
        assert refused.error is PRODUCER_FENCED
        assert (await admin.describe_transaction("named")).epoch == other.epoch

    run(node, work)
