"""Topic administration against a broker in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from penstock.client.admin import Admin
from penstock.client.cluster_view import ClusterView
from penstock.client.errors import NotReachable, UnknownTopic
from penstock.model.errors import UNKNOWN_TOPIC_OR_PARTITION, PenstockError
from penstock.testing import EmbeddedBroker, broker


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running


def administer(bootstrap: str, work: Callable[[Admin], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with Admin(bootstrap_servers=bootstrap) as admin:
            return await work(admin)

    return asyncio.run(main())


def test_what_is_created_is_described(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> Any:
        topic_id = await admin.create_topic("t", 3, configs={"retention.ms": "5"})
        found = await admin.describe_topic("t")
        return topic_id, found

    topic_id, found = administer(node.bootstrap_servers, work)
    assert (found.name, found.id, found.internal, found.replication) == ("t", topic_id, False, 1)
    assert found.configs == {"retention.ms": "5"}
    assert [(p.partition, p.leader, p.start, p.end) for p in found.partitions] == [
        (0, 1, 0, 0),
        (1, 1, 0, 0),
        (2, 1, 0, 0),
    ]


def test_descriptions_come_in_the_order_of_the_names(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> Any:
        for name in ("b", "a", "c"):
            await admin.create_topic(name)
        return [found.name for found in (await admin.describe_topics(["c", "a", "b"], offsets=False)).done.values()]

    assert administer(node.bootstrap_servers, work) == ["c", "a", "b"]


def test_a_refusal_carries_the_code_and_names_what_it_is_about(node: EmbeddedBroker) -> None:
    with pytest.raises(UnknownTopic, match="topic 'absent' does not exist") as refused:
        administer(node.bootstrap_servers, lambda admin: admin.describe_topic("absent"))
    assert refused.value.error is UNKNOWN_TOPIC_OR_PARTITION


def test_the_next_bootstrap_address_is_asked_when_the_first_is_silent(node: EmbeddedBroker) -> None:
    both = f"127.0.0.1:1,{node.bootstrap_servers}"
    assert isinstance(administer(both, lambda admin: admin.topics()), list)


def test_when_nobody_answers_the_first_address_is_blamed() -> None:
    with pytest.raises(NotReachable) as failed:
        administer("127.0.0.1:1,127.0.0.1:2", lambda admin: admin.topics())
    assert failed.value.where == "127.0.0.1:1"


def test_a_broker_that_nobody_knows_is_named(node: EmbeddedBroker) -> None:
    async def main() -> None:
        async with ClusterView(node.bootstrap_servers) as view:
            await view.ask(7, object())

    with pytest.raises(PenstockError, match="broker 7 is not in the cluster"):
        asyncio.run(main())


def test_a_view_outlives_a_restart_of_its_broker(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> Any:
        await admin.create_topic("kept")
        await asyncio.to_thread(node.restart)
        return [found.name for found in await admin.topics()]

    assert "kept" in administer(node.bootstrap_servers, work)


def test_what_one_may_do_with_topics_is_told(node: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> Any:
        await admin.create_topic("mine", 1)
        return await admin.topic_operations()

    told = administer(node.bootstrap_servers, work)["mine"]
    assert {"read", "write", "alter_configs", "describe_configs"} <= told
    assert not told & {"all", "unknown", "cluster_action"}
