"""Certificates by AlterConfigs: what a listener could not use is refused, with a sentence, and changes nothing."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from penstock import Admin
from penstock.certificates import Role, create_authority, issue_node, open_authority, write_issued
from penstock.client.admin.configs import ConfigResource
from penstock.metadata.entities import CONFIG_BROKER
from tests.patience import within
from tests.walks.test_secured_nodes import NOW, SecuredCluster
from tests.walks.three_nodes import CLUSTER_ID, walk_in

NODE = ConfigResource("broker", "2")
INTERNAL, CONTROLLER = "listener.name.internal.ssl.", "listener.name.controller.ssl."


class Stores:
    """Key stores of node 2, one that would do and others."""

    def __init__(self, cluster: SecuredCluster, folder: Path) -> None:
        authority = open_authority(cluster.files.authority_at(Role.CLUSTER))
        others = create_authority(folder / "others", Role.CLUSTER, CLUSTER_ID, now=NOW)
        self.renewed, self.stranger = folder / "renewed.pem", folder / "stranger.pem"
        self.elsewhere, self.somebody, self.broken = folder / "elsewhere.pem", folder / "3.pem", folder / "broken.pem"
        write_issued(issue_node(authority, 2, ["127.0.0.1"], now=NOW), self.renewed)
        write_issued(issue_node(others, 2, ["127.0.0.1"], now=NOW), self.stranger)
        write_issued(issue_node(authority, 2, ["10.0.0.1"], now=NOW), self.elsewhere)
        write_issued(issue_node(authority, 3, ["127.0.0.1"], now=NOW), self.somebody)
        self.broken.write_text("no certificate")
        self.broken.chmod(0o600)
        self.ended, self.unfit = folder / "ended.pem", folder / "unfit.pem"
        write_issued(
            issue_node(authority, 2, ["127.0.0.1"], now=NOW - timedelta(days=1, minutes=30), days=1), self.ended
        )
        one, other = (issue_node(authority, 2, ["127.0.0.1"], now=NOW) for _ in range(2))
        write_issued(replace(one, key=other.key), self.unfit)
        self.foreign_trust = folder / "others" / "ca.pem"


async def said(admin: Admin, changes: dict[str, str | None], *, resource: ConfigResource = NODE) -> str:
    """Why a change is refused; empty when it was made. To try it says the same."""
    tried = await admin.alter_configs({resource: changes}, validate_only=True)
    done = await admin.alter_configs({resource: changes})
    assert str(tried.failed.get(resource)) == str(done.failed.get(resource))
    failure = done.failed.get(resource)
    assert failure is None or "INVALID_REQUEST" in str(failure), failure
    return "" if failure is None else str(failure)


async def shown(cluster: SecuredCluster, listener: str) -> str:
    """The certificate that node 2 shows whoever comes."""
    port = {INTERNAL: cluster.ports, CONTROLLER: cluster.controller_ports}[listener][2]
    return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port), timeout=within(20))


@pytest.mark.parametrize("listener", [INTERNAL, CONTROLLER])
def test_a_listener_takes_no_store_that_it_could_not_use(tmp_path: Path, listener: str) -> None:
    async def steps(cluster: SecuredCluster) -> None:
        stores = Stores(cluster, tmp_path)
        location = f"{listener}keystore.location"
        at_first = await shown(cluster, listener)
        async with Admin(**cluster.alice) as admin:
            assert "no such file" in await said(admin, {location: "/nowhere/node.pem"})
            assert "broken.pem" in await said(admin, {location: str(stores.broken)})
            assert "another subject" in await said(admin, {location: str(stores.somebody)})
            assert "lacks IP:127.0.0.1" in await said(admin, {location: str(stores.elsewhere)})
            assert "would not get along" in await said(admin, {location: str(stores.stranger)})
            assert "has ended" in await said(admin, {location: str(stores.ended)})
            assert "is not the key of" in await said(admin, {location: str(stores.unfit)})
            trust = {f"{listener}truststore.location": str(stores.foreign_trust)}
            assert "would not get along" in await said(admin, {**trust})
            replaced = await admin.replace_configs({NODE: {location: str(stores.broken)}})
            assert "broken.pem" in str(replaced.failed[NODE])
            assert cluster.nodes[2].control.metadata.image.config(CONFIG_BROKER, "2") == {}
            assert await shown(cluster, listener) == at_first

            # One that it can use, and the way back.
            assert await said(admin, {location: str(stores.renewed)}) == ""
            renewed = stores.renewed.read_text()
            async with asyncio.timeout(within(20)):
                while await shown(cluster, listener) not in renewed:
                    pass
            stores.renewed.write_text("no certificate")
            assert "renewed.pem" in await said(admin, {location: str(stores.renewed)})
            assert await shown(cluster, listener) in renewed
            assert await said(admin, {location: None}) == ""

    walk_in(lambda: SecuredCluster(tmp_path / "cluster", nodes=2), steps)


def test_stores_of_no_listener_or_of_all_nodes_are_not_set(tmp_path: Path) -> None:
    async def steps(cluster: SecuredCluster) -> None:
        renewed = str(Stores(cluster, tmp_path).renewed)
        everywhere = ConfigResource("broker", "")
        async with Admin(**cluster.alice) as admin:
            assert "listener.name" in await said(admin, {"ssl.keystore.location": renewed})
            wide = await said(admin, {f"{INTERNAL}keystore.location": renewed}, resource=everywhere)
            assert "broker id" in wide

    walk_in(lambda: SecuredCluster(tmp_path / "cluster", nodes=2), steps)
