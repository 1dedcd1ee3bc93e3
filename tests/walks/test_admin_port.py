"""The admin port of a whole node with TLS and a login: who reads it, and how its certificate is renewed."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from penstock.certificates import Role, create_authority, issue_node, write_issued
from penstock.model.config import BrokerSettings
from penstock.server.node import Node
from penstock.server.reception.entrance import BadListeners
from tests.patience import until, within
from tests.walks.test_secured_nodes import NOW
from tests.walks.three_nodes import CLUSTER_ID, Cluster, walk_in

ADMIN_PROPERTIES = {
    "penstock.admin.listener": "127.0.0.1:0",
    "penstock.admin.security.protocol": "SSL",
    "penstock.admin.username": "prometheus",
    "penstock.admin.password": "pa55",
    "connection.failed.authentication.delay.ms": "1",
}


class WatchedCluster(Cluster):
    def __init__(self, folder: Path) -> None:
        super().__init__(1)
        self.authority = create_authority(folder / "ca", Role.CLUSTER, CLUSTER_ID, now=NOW)
        self.certificate, self.audit = folder / "admin.pem", folder / "audit.log"
        self.issue()

    def issue(self) -> None:
        write_issued(issue_node(self.authority, 1, ["127.0.0.1"], now=NOW), self.certificate, replace=True)

    def changed(self, node_id: int, properties: dict[str, str]) -> dict[str, str]:
        return {
            **properties,
            **ADMIN_PROPERTIES,
            "listener.name.admin.ssl.keystore.type": "PEM",
            "listener.name.admin.ssl.keystore.location": str(self.certificate),
            "penstock.audit.log.file": str(self.audit),
        }

    async def get(self, path: str, login: str | None = None) -> tuple[int, bytes, bytes]:
        """Status, body, and the certificate that the node showed."""
        trust = ssl.create_default_context(cadata=self.authority.trusted_pem.decode())
        async with asyncio.timeout(within(20)):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.nodes[1].admin_port, ssl=trust)
            header = "" if login is None else f"Authorization: {login}\r\n"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: node\r\n{header}\r\n".encode())
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            shown: Any = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.close()
        return int(head.split(b" ")[1]), body, shown


def test_the_port_is_read_over_tls_by_those_who_log_in_and_sees_a_new_certificate(tmp_path: Path) -> None:
    right, wrong = "Basic cHJvbWV0aGV1czpwYTU1", "Basic cHJvbWV0aGV1czpndWVzcw=="

    async def steps(cluster: WatchedCluster) -> None:
        status, body, first = await cluster.get("/metrics", right)
        assert status == 200
        assert b'penstock_certificate_not_after_seconds{listener="ADMIN"}' in body
        assert (await cluster.get("/readyz", right))[:2] == (200, b'{"status": "ready", "reasons": []}\n')
        assert (await cluster.get("/readyz"))[0] == 401
        assert (await cluster.get("/healthz"))[:2] == (200, b'{"status": "healthy"}\n')
        assert (await cluster.get("/metrics", wrong))[0] == 401
        await until(lambda: cluster.audit.exists() and cluster.audit.read_bytes().endswith(b"\n"))
        (told,) = [json.loads(line) for line in cluster.audit.read_text().splitlines()]
        assert (told["type"], told["listener"], told["mechanism"]) == ("login", "ADMIN", "basic")
        assert told["name"] == "prometheus"

        # What is not TLS is turned away, and costs nobody else.
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.nodes[1].admin_port)
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(within(20)):
            assert b"HTTP" not in await reader.read()
        writer.close()

        cluster.issue()
        tls = cluster.nodes[1]._admin_tls
        assert tls is not None
        await tls.look()
        assert (await cluster.get("/healthz"))[2] != first

    walk_in(lambda: WatchedCluster(tmp_path), steps)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"penstock.admin.password": ""}, "the password is empty"),
        ({"penstock.admin.username": ""}, "set together"),
        ({"listener.name.admin.ssl.keystore.location": "/nowhere.pem"}, r"penstock\.admin\.listener .*nowhere"),
        ({"listeners": "ADMIN://127.0.0.1:0,CONTROLLER://127.0.0.1:0"}, "listeners has the name ADMIN"),
    ],
)
def test_a_node_whose_admin_port_cannot_be_served_as_asked_does_not_start(
    tmp_path: Path, changes: dict[str, str], why: str
) -> None:
    async def steps() -> None:
        cluster = WatchedCluster(tmp_path)
        given = {**cluster.settings(1).properties, **changes}
        if "listeners" in changes:
            given |= {"listener.security.protocol.map": "ADMIN:PLAINTEXT,CONTROLLER:PLAINTEXT"}
            given |= {"inter.broker.listener.name": "ADMIN"}
        ports: Any = None
        with pytest.raises(BadListeners, match=why):
            Node(BrokerSettings.load(given), ports, random=cluster.chance, formats_itself=False)

    asyncio.run(steps())
