"""What is asked of a broker to explain a group, against one in this process: lag, held back, lost, unread records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from penstock import Consumer, Producer
from penstock.client.admin import Admin, QuotaEntity
from penstock.client.admin.group_offsets import CommittedOffset
from penstock.model.ids import TopicPartition
from penstock.operations.explaining.explain import behind_ms, explain
from penstock.operations.explaining.looking import look
from penstock.operations.explaining.sights import GroupFacts
from penstock.testing import EmbeddedBroker, broker

FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"log.retention.ms": -1}) as running:
        yield running


def facts(node: EmbeddedBroker, group: str, work: Callable[[Admin, Producer], Awaitable[None]]) -> GroupFacts:
    async def main() -> GroupFacts:
        async with (
            Admin(bootstrap_servers=node.bootstrap_servers) as admin,
            Producer(node.bootstrap_servers, transactional_id=f"of-{group}") as producer,
        ):
            await work(admin, producer)
            return await look(admin, group, 0)

    return asyncio.run(main())


async def placed(admin: Admin, group: str, *offsets: tuple[str, int]) -> None:
    moved = {TopicPartition(topic, 0): CommittedOffset(offset) for topic, offset in offsets}
    (await admin.alter_group_offsets(group, moved)).checked()


async def written(producer: Producer, topic: str, number: int) -> None:
    async with producer.transaction():
        for index in range(number):
            producer.send(topic, b"v" * 10, key=b"k%d" % index, partition=0, timestamp=FIRST_MS + index)


def test_the_first_unread_record_tells_how_old_the_lag_is(node: EmbeddedBroker) -> None:
    async def work(admin: Admin, producer: Producer) -> None:
        await admin.create_topic("old", 1, configs={"retention.ms": "1000"})
        await written(producer, "old", 5)
        await placed(admin, "old-readers", ("old", 2))

    found = facts(node, "old-readers", work)
    unread = found.unread[TopicPartition("old", 0)]
    assert (unread.offset, unread.timestamp, unread.key, unread.size) == (2, FIRST_MS + 2, b"k2", 12)
    assert behind_ms(found) == found.last.at_ms - FIRST_MS - 2
    assert found.retention_ms == {"old": 1000}
    assert [each.kind for each in explain(found)] == ["nobody_reads", "will_be_lost"]


def test_markers_are_passed_over_and_an_end_has_no_record(node: EmbeddedBroker) -> None:
    async def work(admin: Admin, producer: Producer) -> None:
        await admin.create_topic("marked", 1)
        await written(producer, "marked", 2)
        await written(producer, "marked", 1)
        item = TopicPartition("marked", 0)
        behind_marker = await admin.record_at(item, 2)
        assert behind_marker is not None
        assert (behind_marker.offset, behind_marker.key) == (3, b"k0")
        assert await admin.record_at(item, 4) is None
        await placed(admin, "marked-readers", ("marked", 2))

    assert facts(node, "marked-readers", work).unread[TopicPartition("marked", 0)].offset == 3


def test_an_open_transaction_and_deleted_records_are_seen(node: EmbeddedBroker) -> None:
    async def work(admin: Admin, producer: Producer) -> None:
        await admin.create_topic("held", 1)
        await admin.create_topic("trimmed", 1)
        await written(producer, "trimmed", 5)
        await admin.trim_topic("trimmed", {0: 4})
        await written(producer, "held", 3)
        await placed(admin, "both", ("held", 4), ("trimmed", 1))
        await producer.begin()
        producer.send("held", b"open", partition=0)
        await producer.flush()
        found = await look(admin, "both", 0)
        assert [each.kind for each in explain(found)] == ["nobody_reads", "already_lost", "held_back"]
        assert found.last.partitions[TopicPartition("held", 0)].stable == 4
        await producer.abort()

    assert "held_back" not in [each.kind for each in explain(facts(node, "both", work))]


def test_members_and_their_limits_are_seen(node: EmbeddedBroker) -> None:
    async def work(admin: Admin, producer: Producer) -> None:
        await admin.create_topic("read", 2)
        await admin.alter_quotas({QuotaEntity(client_id="slow"): {"consumer_byte_rate": 100_000.0}})
        await written(producer, "read", 3)
        async with Consumer(
            "read",
            bootstrap_servers=node.bootstrap_servers,
            group_id="readers",
            client_id="slow",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        ) as consumer:
            async for record in consumer:
                assert record.offset == 0
                break
            await consumer.commit()
            found = await look(admin, "readers", 0)
        assert [(each.client_id, each.partitions) for each in found.last.readers.values()] == [("slow", 2)]
        assert found.last.partitions[TopicPartition("read", 0)].member_id is not None
        assert found.last.lag == 3
        assert found.byte_rates == {"slow": 100_000.0}

    facts(node, "readers", work)
