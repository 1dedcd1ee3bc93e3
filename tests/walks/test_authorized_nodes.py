"""Three nodes whose ACLs decide, over real listeners: nobody is let do what no ACL allows, wherever it asks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer
from penstock.certificates import Role, create_authority, issue_client, write_issued
from penstock.certificates.node_settings import AUTHORIZER, node_principal
from penstock.client.admin import Acl, AclFilter
from penstock.client.errors import ClientError, NotAllowed
from tests.patience import until, within
from tests.walks.test_secured_nodes import NOW, SecuredCluster
from tests.walks.three_nodes import CLUSTER_ID, walk_in

ALICE = "User:CN=alice"


class AuthorizedCluster(SecuredCluster):
    """Nodes and the client `admin` may do everything, alice what ACLs allow."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        others = create_authority(folder / "admins", Role.CLIENTS, CLUSTER_ID, now=NOW)
        write_issued(issue_client(others, "admin", now=NOW), self.files.client("admin"))
        self.trusts_all.write_bytes(self.trusts_all.read_bytes() + others.trusted_pem)

    def changed(self, node_id: int, properties: dict[str, str]) -> dict[str, str]:
        nodes = [node_principal(each, CLUSTER_ID) for each in self.roles]
        return {
            **super().changed(node_id, properties),
            "authorizer.class.name": AUTHORIZER,
            "super.users": ";".join([*nodes, "User:CN=admin"]),
        }

    @property
    def admin(self) -> dict[str, Any]:
        return {**self.alice, "certfile": str(self.files.client("admin"))}

    def knows(self, count: int) -> bool:
        """Whether every broker has as many ACLs to decide by."""
        acls = [node.broker.services.authorizer.acls for node in self.nodes.values()]
        return all(each is not None and len(each) == count for each in acls)


async def send(cluster: AuthorizedCluster, value: bytes) -> None:
    async with asyncio.timeout(within(20)), Producer(**cluster.alice) as producer:
        await producer.send("orders", value)


async def first_record(cluster: AuthorizedCluster) -> bytes | None:
    options: dict[str, Any] = {"group_id": "readers", "offset_reset": "earliest", **cluster.alice}
    async with asyncio.timeout(within(30)), Consumer("orders", **options) as consumer:
        async for record in consumer:
            return record.value
    return None


def test_acls_open_topics_and_close_them_again_on_every_node(tmp_path: Path) -> None:
    rights = [
        Acl(ALICE, "write", "topic", "orders"),
        Acl(ALICE, "read", "topic", "ord", pattern="prefixed"),
        Acl(ALICE, "read", "group", "readers"),
    ]

    async def steps(cluster: AuthorizedCluster) -> None:
        async with Admin(**cluster.admin) as admin:
            await admin.create_topic("orders", partitions=3, replication=3)
            await until(lambda: cluster.in_sync("orders", 3), timeout_s=30)
            with pytest.raises(ClientError):
                await send(cluster, b"denied")
            (await admin.create_acls(rights)).checked()
            await until(lambda: cluster.knows(3), "every broker knows the ACLs")
            await send(cluster, b"allowed")
            assert await first_record(cluster) == b"allowed"
            # What nodes decide survives the one that decided it.
            gone = cluster.controller
            cluster.crash(gone)
            await until(lambda: cluster.controller not in (0, gone), "no other controller", timeout_s=30)
            await until(lambda: cluster.in_sync("orders", 2), timeout_s=30)
            await cluster.start(gone)
            await until(lambda: cluster.in_sync("orders", 3), timeout_s=30)
            assert cluster.knows(3)
            (await admin.delete_acls([AclFilter(operation="write")])).checked()
            await until(lambda: cluster.knows(2), "every broker forgets the ACL")
            with pytest.raises(ClientError):
                await send(cluster, b"denied again")

    walk_in(lambda: AuthorizedCluster(tmp_path), steps)


def test_who_has_no_right_is_refused_by_every_broker_whoever_is_the_controller(tmp_path: Path) -> None:
    async def steps(cluster: AuthorizedCluster) -> None:
        for port in cluster.ports.values():
            settings = {**cluster.alice, "bootstrap_servers": f"127.0.0.1:{port}"}
            async with Admin(**settings) as alice:
                with pytest.raises(NotAllowed):
                    await alice.create_topic("mine")
                given = Acl(ALICE, "all", "cluster")
                assert isinstance((await alice.create_acls([given])).failed[given], NotAllowed)
                assert await alice.topics(internal=True) == []
        assert cluster.knows(0)

    walk_in(lambda: AuthorizedCluster(tmp_path), steps)
