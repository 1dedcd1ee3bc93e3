"""A transaction whose partition and whose group's coordinator lose their leader while it is open."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import Admin
from penstock.model.errors import NONE
from penstock.model.ids import OFFSETS_TOPIC
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.server.node import Node
from penstock.server.partitions.producing.transactions import Transactions
from penstock.transport.net import AsyncioNet
from tests.patience import until, within
from tests.walks.data_plane import ANSWER_MS, Client
from tests.walks.test_transactional_offsets import UNSTABLE, add, stable
from tests.walks.three_nodes import Cluster, walk
from tests.walks.transacting import Said, Transactional, mark, read_committed

OK = NONE.code


def serve(node: Node) -> None:
    transactions = Transactions(node.settings, node.broker._clock, Said())
    node.broker.produces.transactions = node.broker.groups.transactions = transactions


async def dial(cluster: Cluster, node_id: int) -> Client:
    link = await AsyncioNet(asyncio.get_running_loop()).dial("127.0.0.1", cluster.ports[node_id], within(ANSWER_MS))
    await link.negotiate()
    return Client(link)


def leader_of(cluster: Cluster, topic: str, partition: int) -> int:
    """As every node sees it; 0 while they do not agree."""
    seen = set()
    for node in cluster.nodes.values():
        found = node.control.metadata.image.topic(topic)
        seen.add(found.partitions[partition].leader if found is not None else -1)
    leader = seen.pop() if len(seen) == 1 else -1
    return leader if leader in cluster.nodes else 0


def log_at(cluster: Cluster, node_id: int, topic: str, partition: int) -> Any:
    return cluster.nodes[node_id].broker.partitions.named(topic, partition).require_log()


def test_an_open_transaction_outlives_the_leaders_that_it_wrote_to() -> None:
    async def steps(cluster: Cluster) -> None:
        for node in cluster.nodes.values():
            serve(node)
        asker = await dial(cluster, 2)
        assert (await asker.ask(FindCoordinatorRequest(key="g"), 2)).error_code == OK
        home = cluster.nodes[2].broker.groups.home_of("g")
        await until(lambda: leader_of(cluster, OFFSETS_TOPIC, home) > 0)
        first = leader_of(cluster, OFFSETS_TOPIC, home)
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.create_topic(
                "orders", assignment={0: [first, *(each for each in cluster.nodes if each != first)]}
            )
        await until(lambda: leader_of(cluster, "orders", 0) == first)

        client = await dial(cluster, first)
        producer = Transactional(client)
        assert await producer.send("orders", b"a", b"b") == [(OK, 0)]
        assert await add(client, producer, 10) == [OK]
        await until(lambda: cluster.in_sync("orders", 3) and cluster.in_sync(OFFSETS_TOPIC, 3))
        cluster.crash(first)
        for topic, partition in (("orders", 0), (OFFSETS_TOPIC, home)):
            await until(lambda: leader_of(cluster, topic, partition) not in (0, first), "nobody takes over")  # noqa: B023
        leader = leader_of(cluster, "orders", 0)
        await until(lambda: log_at(cluster, leader, "orders", 0).committed == 2)
        for node_id in cluster.nodes:
            assert log_at(cluster, node_id, "orders", 0).last_stable == 0, "on every replica"
        reader = await dial(cluster, leader)
        assert await read_committed(reader, "orders") == []
        moved = await dial(cluster, leader_of(cluster, OFFSETS_TOPIC, home))
        assert await stable(moved) == UNSTABLE, "what was pending is pending at whoever coordinates now"

        producer.client = reader
        assert await producer.send("orders", b"c") == [(OK, 2)], "it goes on, and nobody is asked"
        assert await mark(moved, producer, (OFFSETS_TOPIC, home)) == [OK]
        assert await mark(reader, producer, ("orders", 0)) == [OK]
        assert await stable(moved) == 10
        assert await read_committed(reader, "orders") == [b"a", b"b", b"c"]

    walk(steps, offsets_topic_replication_factor="3", offsets_topic_num_partitions="1")
