"""Three nodes that know each other by certificates, on the controllers' listener and between brokers."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer, blocking
from penstock.certificates import CertificateDirectory, Role, create_authority, issue_client, issue_node, write_issued
from penstock.client.errors import ClientError, NotReachable, NotTrusted
from penstock.client.spans import Span, SpanEnd, SpanReader
from tests.patience import until, within
from tests.walks.three_nodes import CLUSTER_ID, Cluster, walk_in

NOW = datetime.now(UTC)


class SecuredCluster(Cluster):
    """Mutual TLS everywhere. Controllers trust nodes alone; brokers trust clients, too."""

    def __init__(self, folder: Path, nodes: int = 3) -> None:
        super().__init__(nodes)
        self.files = CertificateDirectory(folder)
        nodes = create_authority(self.files.authority_at(Role.CLUSTER), Role.CLUSTER, CLUSTER_ID, now=NOW)
        clients = create_authority(self.files.authority_at(Role.CLIENTS), Role.CLIENTS, CLUSTER_ID, now=NOW)
        for node_id in self.roles:
            write_issued(issue_node(nodes, node_id, ["127.0.0.1"], now=NOW), self.files.node(node_id))
        write_issued(issue_client(clients, "alice", now=NOW), self.files.client("alice"))
        self.trusts_nodes, self.trusts_all = folder / "nodes.pem", folder / "all.pem"
        self.trusts_nodes.write_bytes(nodes.trusted_pem)
        self.trusts_all.write_bytes(nodes.trusted_pem + clients.trusted_pem)

    def changed(self, node_id: int, properties: dict[str, str]) -> dict[str, str]:
        return {
            **properties,
            "listeners": properties["listeners"].replace("PLAINTEXT://", "INTERNAL://"),
            "listener.security.protocol.map": "INTERNAL:SSL,CONTROLLER:SSL",
            "inter.broker.listener.name": "INTERNAL",
            "ssl.keystore.location": str(self.files.node(node_id)),
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            "ssl.client.auth": "required",
            "listener.name.internal.ssl.truststore.location": str(self.trusts_all),
            "listener.name.controller.ssl.truststore.location": str(self.trusts_nodes),
        }

    @property
    def alice(self) -> dict[str, Any]:
        """What clients are made with."""
        trust = {"cafile": str(self.trusts_nodes), "certfile": str(self.files.client("alice"))}
        return {"bootstrap_servers": self.bootstrap, **trust}


async def sent(cluster: SecuredCluster, values: list[bytes]) -> None:
    async with Producer(acks="all", **cluster.alice) as producer:
        await asyncio.gather(*(producer.send("orders", value, key=value) for value in values))


async def stored(cluster: SecuredCluster, count: int) -> list[bytes]:
    found: list[bytes] = []
    options: dict[str, Any] = {"group_id": "readers", "offset_reset": "earliest", **cluster.alice}
    async with asyncio.timeout(within(30)), Consumer("orders", **options) as consumer:
        async for record in consumer:
            found.append(record.value or b"")
            if len(found) >= count:
                return sorted(found)
    return found


async def refused(use: Any, **settings: Any) -> ClientError:
    with pytest.raises(ClientError) as found:
        async with asyncio.timeout(within(20)), Admin(**settings) as admin:
            await use(admin)
    return found.value


def test_nodes_replicate_and_one_may_go_and_come_back(tmp_path: Path) -> None:
    first, second = [b"a%03d" % each for each in range(100)], [b"b%03d" % each for each in range(100)]

    async def steps(cluster: SecuredCluster) -> None:
        async with Admin(**cluster.alice) as admin:
            await admin.create_topic("orders", partitions=3, replication=3)
        await until(lambda: cluster.in_sync("orders", 3))
        await sent(cluster, first)
        gone = cluster.controller
        cluster.crash(gone)
        await until(lambda: cluster.controller not in (0, gone), "no other controller", timeout_s=30)
        await until(lambda: cluster.in_sync("orders", 2), timeout_s=30)
        await sent(cluster, second)
        await cluster.start(gone)
        await until(lambda: cluster.in_sync("orders", 3), timeout_s=30)
        assert await stored(cluster, 200) == first + second

    walk_in(lambda: SecuredCluster(tmp_path), steps)


def use_without_await(settings: dict[str, Any]) -> list[bytes]:
    """The blocking twins, and columns."""
    with blocking.Admin(**settings) as admin:
        admin.create_topic("lines")
    with blocking.Producer(**settings) as producer:
        producer.send("lines", b"one").result()
        producer.send("lines", b"two").result()
    found: list[bytes] = []
    with blocking.Consumer("lines", offset_reset="earliest", **settings) as consumer:
        while len(found) < 2:
            for batch in consumer.poll_arrow(timeout_ms=10_000):
                found += batch.column("value").to_pylist()
    return found


def test_every_kind_of_client_speaks_tls(tmp_path: Path) -> None:
    async def steps(cluster: SecuredCluster) -> None:
        assert await asyncio.to_thread(use_without_await, cluster.alice) == [b"one", b"two"]
        async with SpanReader(**cluster.alice) as reader:
            found = [each async for each in reader.read([Span("lines", "", 0, 0, 2)])]
        assert isinstance(found[-1], SpanEnd)

    walk_in(lambda: SecuredCluster(tmp_path, nodes=1), steps)


def test_who_has_no_certificate_of_the_cluster_is_let_in_nowhere(tmp_path: Path) -> None:
    async def steps(cluster: SecuredCluster) -> None:
        trust = {"bootstrap_servers": cluster.bootstrap, "cafile": str(cluster.trusts_nodes)}
        nobody = await refused(lambda admin: admin.topics(), **trust)
        assert isinstance(nobody, (NotTrusted, NotReachable))
        assert "certificate" in nobody.why
        # Clients' certificates open nothing where controllers listen.
        controllers = ",".join(f"127.0.0.1:{port}" for port in cluster.controller_ports.values())
        client = await refused(lambda admin: admin.topics(), **{**cluster.alice, "bootstrap_servers": controllers})
        assert isinstance(client, (NotTrusted, NotReachable))
        plaintext = await refused(lambda admin: admin.topics(), bootstrap_servers=cluster.bootstrap)
        assert "is this a listener with TLS?" in plaintext.why

    walk_in(lambda: SecuredCluster(tmp_path), steps)


def test_a_node_that_the_others_do_not_trust_does_not_come_in_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def steps(cluster: SecuredCluster) -> None:
        await cluster.stop(3)
        strangers = create_authority(tmp_path / "strangers", Role.CLUSTER, CLUSTER_ID, now=NOW)
        stranger = issue_node(strangers, 3, ["127.0.0.1"], now=NOW)
        write_issued(stranger, cluster.files.node(3), replace=True)
        node = cluster.make(3)
        starting = asyncio.ensure_future(node.start())

        def told() -> bool:
            return any("certificate" in each.getMessage() for each in caplog.records if each.name == "penstock.peers")

        await until(told, "nobody says why", timeout_s=30)
        assert not starting.done()
        starting.cancel()
        await asyncio.wait([starting])

    with caplog.at_level(logging.WARNING):
        walk_in(lambda: SecuredCluster(tmp_path), steps)
