"""Three nodes that log in to each other, on the controllers' listener and between brokers, again and again."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import Admin, Consumer, Producer
from penstock.transport.dial import Link
from tests.patience import until, within
from tests.walks.three_nodes import Cluster, walk_in

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required "
REAUTH_MS = 2_000


class LoggedInCluster(Cluster):
    """Nodes and clients log in by PLAIN, and all sessions are short."""

    def changed(self, node_id: int, properties: dict[str, str]) -> dict[str, str]:
        internal = 'username="node" password="n0de" user_node="n0de" user_alice="a1ice";'
        controller = 'username="voter" password="v0ter" user_voter="v0ter";'
        return {
            **properties,
            "listeners": properties["listeners"].replace("PLAINTEXT://", "INTERNAL://"),
            "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.internal.plain.sasl.jaas.config": PLAIN + internal,
            "listener.name.controller.plain.sasl.jaas.config": PLAIN + controller,
            "connections.max.reauth.ms": str(REAUTH_MS),
        }

    @property
    def alice(self) -> dict[str, Any]:
        login = {"username": "alice", "password": "a1ice", "mechanism": "PLAIN"}
        return {"bootstrap_servers": self.bootstrap, **login}


def links_of(cluster: Cluster) -> list[Link]:
    """Between all nodes, to controllers and between brokers."""
    peers = [part.peers for node in cluster.nodes.values() for part in (node.control, node.broker) if part is not None]
    return [link for each in peers for link in each._standing]


async def read_all(cluster: LoggedInCluster, count: int) -> set[bytes]:
    found: set[bytes] = set()
    options: dict[str, Any] = {"group_id": "readers", "offset_reset": "earliest", **cluster.alice}
    async with asyncio.timeout(within(30)), Consumer("orders", **options) as consumer:
        async for record in consumer:
            found.add(record.value or b"")
            if len(found) >= count:
                break
    return found


def test_sessions_end_and_begin_again_while_records_go_on_and_a_node_goes_and_comes_back() -> None:
    async def steps(cluster: LoggedInCluster) -> None:
        async with Admin(**cluster.alice) as admin:
            await admin.create_topic("orders", partitions=3, replication=3)
        await until(lambda: cluster.in_sync("orders", 3))
        sent: list[bytes] = []
        loop = asyncio.get_running_loop()
        async with Producer(acks="all", **cluster.alice) as producer:
            await producer.send("orders", b"first", key=b"first")
            sent.append(b"first")
            began, standing = loop.time(), links_of(cluster)
            # Two whole sessions of everybody, in which nothing may go wrong.
            while loop.time() - began < 2 * REAUTH_MS / 1_000:
                value = b"%d" % len(sent)
                await producer.send("orders", value, key=value)
                sent.append(value)
            assert producer.metrics()["connection_failures"] == 0
            assert standing
            assert [link for link in standing if not link.up] == [], "logins are renewed, links are not made anew"
            gone = cluster.controller
            cluster.crash(gone)
            await until(lambda: cluster.in_sync("orders", 2), timeout_s=30)
            value = b"%d" % len(sent)
            await producer.send("orders", value, key=value)
            sent.append(value)
        await cluster.start(gone)
        await until(lambda: cluster.in_sync("orders", 3), timeout_s=30)
        assert await read_all(cluster, len(sent)) == set(sent)

    walk_in(LoggedInCluster, steps)
