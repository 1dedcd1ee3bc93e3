"""The cluster view against a broker in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from penstock import Admin, Consumer
from penstock.client import cluster_view
from penstock.client.cluster_view import ClusterView
from penstock.client.errors import BrokerRefused, NotReachable, UnknownTopic
from penstock.model.errors import INVALID_TOPIC_EXCEPTION
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": 2}) as running:
        yield running


def look(bootstrap: str, work: Callable[[ClusterView], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        async with ClusterView(bootstrap, backoff_ms=10, **settings) as view:
            return await work(view)

    return asyncio.run(main())


def test_a_topic_is_created_on_demand_and_known_by_name_and_id(node: EmbeddedBroker) -> None:
    async def work(view: ClusterView) -> Any:
        found = await view.topic("demanded", create=True)
        return found, view.cached("demanded"), view.name_of(found.id), view.leader_of("demanded", 1), view.nodes

    found, cached, name, leader, nodes = look(node.bootstrap_servers, work)
    assert found == cached
    assert (found.name, len(found.partitions), name, leader, nodes) == ("demanded", 2, "demanded", 1, [1])


def test_a_topic_that_does_not_come_is_named_after_the_time_is_over(node: EmbeddedBroker) -> None:
    with pytest.raises(UnknownTopic, match="'absent'"):
        look(node.bootstrap_servers, lambda view: view.topic("absent", timeout_ms=1_000))


def test_a_name_that_cannot_be_is_refused_at_once(node: EmbeddedBroker) -> None:
    with pytest.raises(BrokerRefused) as refused:
        look(node.bootstrap_servers, lambda view: view.topic("not a name", create=True, timeout_ms=60_000))
    assert refused.value.error == INVALID_TOPIC_EXCEPTION


def test_those_who_wait_share_one_request(node: EmbeddedBroker) -> None:
    async def work(view: ClusterView) -> int:
        await view.topic("shared", create=True)
        before = view.generation
        await asyncio.gather(*(view.refreshed() for _ in range(20)))
        return view.generation - before

    assert look(node.bootstrap_servers, work) == 1


def test_links_are_shared_and_dedicated_ones_are_not(node: EmbeddedBroker) -> None:
    async def work(view: ClusterView) -> Any:
        first, second = await asyncio.gather(view.link(1), view.link(1))
        own = await view.dedicated_link(1)
        own.close()
        return first is second, own is first, first.up

    assert look(node.bootstrap_servers, work) == (True, False, True)


def test_an_address_in_the_list_that_is_dead_is_passed_over(node: EmbeddedBroker) -> None:
    addresses = ["127.0.0.1:1", node.bootstrap_servers]
    assert look(addresses, lambda view: view.topic("second-address", create=True)).name == "second-address"  # type: ignore[arg-type]


def test_nobody_there_is_said(node: EmbeddedBroker) -> None:
    with pytest.raises(NotReachable, match=r"127\.0\.0\.1:1"):
        look("127.0.0.1:1", lambda view: view.topic("t", timeout_ms=within(1) * 1_000))


def test_metadata_is_asked_for_again_when_it_is_old(node: EmbeddedBroker) -> None:
    async def work(view: ClusterView) -> bool:
        await view.topic("aged", create=True)
        before = view.generation
        while view.generation == before:
            await asyncio.sleep(0.005)
        return True

    assert look(node.bootstrap_servers, work, metadata_max_age_ms=20)


def test_the_coordinator_of_a_group_is_found_and_remembered(node: EmbeddedBroker) -> None:
    async def work(view: ClusterView) -> Any:
        while True:
            try:
                return await view.coordinator("g"), await view.coordinator("g")
            except BrokerRefused as refused:
                if not refused.retriable:
                    raise
                await asyncio.sleep(0.01)

    assert look(node.bootstrap_servers, work) == (1, 1)


def test_levels_of_features_are_those_of_the_last_broker_that_was_dialled(node: EmbeddedBroker) -> None:
    async def work(view: ClusterView) -> Any:
        before = view.finalized("group.version")
        await view.metadata([])
        return before, view.finalized("group.version"), view.finalized("no.such.feature")

    assert look(node.bootstrap_servers, work) == (0, 1, 0)


def test_a_group_and_a_transactional_id_of_one_name_are_two(node: EmbeddedBroker) -> None:
    async def work(view: ClusterView) -> Any:
        await view.coordinator("twice")
        view.forget_coordinator("twice", cluster_view.TRANSACTION)
        return dict(view._coordinators)

    assert list(look(node.bootstrap_servers, work)) == [(cluster_view.GROUP, "twice")]


def test_a_topic_that_was_deleted_does_not_come_back_because_another_is_created(node: EmbeddedBroker) -> None:
    async def work(view: ClusterView) -> list[str | None]:
        async with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
            await view.topic("buried", create=True)
            await admin.delete_topic("buried")
            await view.topic("born-meanwhile", create=True)
            return [topic.name for topic in await admin.topics()]

    names = look(node.bootstrap_servers, work)
    assert "born-meanwhile" in names
    assert "buried" not in names


def test_a_list_of_all_topics_forgets_those_that_are_gone(node: EmbeddedBroker) -> None:
    async def work(view: ClusterView) -> object:
        async with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
            await view.topic("listed-no-more", create=True)
            await admin.delete_topic("listed-no-more")
            await view.topics(None)
            return view.cached("listed-no-more")

    assert look(node.bootstrap_servers, work) is None


def test_coordinators_are_remembered_of_the_newest_groups_only(
    node: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_view, "COORDINATORS_MAX", 3)

    async def work(view: ClusterView) -> list[str]:
        async with Consumer("for-groups", bootstrap_servers=node.bootstrap_servers, group_id="g") as member:
            await member.poll(timeout_ms=10)
            await member.committed(("for-groups", 0))
        for number in range(5):
            await view.coordinator(f"g{number}")
        return [name for _, name in view._coordinators]

    assert look(node.bootstrap_servers, work) == ["g2", "g3", "g4"]
