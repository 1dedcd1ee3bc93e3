"""Nodes log in to each other by every mechanism that can carry it; what could never begin is refused at the start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Admin, Producer
from penstock.certificates.users import scram_records
from penstock.metadata.records import VersionedRecord
from penstock.model.config import BadSettings
from penstock.model.secret import Secret
from tests.identity_provider import AUDIENCE, ISSUER, IdentityProvider, identity_provider
from tests.patience import until
from tests.walks.three_nodes import Cluster, walk_in

LOGIN_MODULES = "org.apache.kafka.common.security."
PLAIN = LOGIN_MODULES + 'plain.PlainLoginModule required username="node" password="n0de" user_node="n0de";'
SCRAM = LOGIN_MODULES + 'scram.ScramLoginModule required username="node" password="n0de";'
JAAS = {"PLAIN": PLAIN, "SCRAM-SHA-256": SCRAM, "SCRAM-SHA-512": SCRAM}
SUPER_USER = "User:node"


class MixedCluster(Cluster):
    """One mechanism between brokers and another towards controllers; only `node` may do anything."""

    def __init__(
        self,
        brokers: str,
        controllers: str,
        provider: IdentityProvider,
        roles: dict[int, str] | None = None,
    ) -> None:
        super().__init__(roles=roles)
        self._mechanisms = {"internal": brokers, "controller": controllers}
        self._provider = provider

    def changed(self, node_id: int, properties: dict[str, str]) -> dict[str, str]:
        logins = {}
        for listener, mechanism in self._mechanisms.items():
            logins[f"listener.name.{listener}.sasl.enabled.mechanisms"] = mechanism
            if mechanism in JAAS:
                logins[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = JAAS[mechanism]
        return {
            **properties,
            **logins,
            "listeners": properties["listeners"].replace("PLAINTEXT://", "INTERNAL://"),
            "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "sasl.mechanism.inter.broker.protocol": self._mechanisms["internal"],
            "sasl.mechanism.controller.protocol": self._mechanisms["controller"],
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": SUPER_USER,
            "sasl.oauthbearer.jwks.endpoint.url": self._provider.keys_url,
            "sasl.oauthbearer.token.endpoint.url": self._provider.tokens_url,
            "sasl.oauthbearer.client.credentials.client.id": "node",
            "sasl.oauthbearer.client.credentials.client.secret": "n0de",
            "penstock.sasl.oauthbearer.allowed.urls": f"{self._provider.keys_url},{self._provider.tokens_url}",
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }

    def first_records(self) -> list[VersionedRecord]:
        return scram_records("node", Secret("n0de"), [each for each in JAAS if each != "PLAIN"])

    @property
    def node(self) -> dict[str, Any]:
        """What clients are made with. The super user is the only one there is."""
        if self._mechanisms["internal"] == "OAUTHBEARER":
            return {"bootstrap_servers": self.bootstrap, "token_provider": lambda: self._provider.token("node")}
        login = {"username": "node", "password": "n0de", "mechanism": self._mechanisms["internal"]}
        return {"bootstrap_servers": self.bootstrap, "security_protocol": "SASL_PLAINTEXT", **login}


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as found:
        found.clients["node"] = "n0de"
        yield found


async def replicated(cluster: MixedCluster, gone: int) -> None:
    """Records reach all brokers; one dies, is done without, comes back and logs in again."""
    replicas = sum("broker" in role for role in cluster.roles.values())
    async with Admin(**cluster.node) as admin:
        await admin.create_topic("orders", partitions=2, replication=replicas)
    await until(lambda: cluster.in_sync("orders", replicas), timeout_s=30)
    async with Producer(acks="all", **cluster.node) as producer:
        await producer.send("orders", b"first")
        cluster.crash(gone)
        await until(lambda: cluster.in_sync("orders", replicas - 1), timeout_s=30)
        await producer.send("orders", b"second")
        await cluster.start(gone)
        await until(lambda: cluster.in_sync("orders", replicas), timeout_s=30)
        await producer.send("orders", b"third")


@pytest.mark.parametrize(
    ("brokers", "controllers"),
    [("SCRAM-SHA-512", "PLAIN"), ("OAUTHBEARER", "OAUTHBEARER"), ("PLAIN", "OAUTHBEARER")],
)
def test_three_nodes_are_one_cluster_by(brokers: str, controllers: str, provider: IdentityProvider) -> None:
    async def steps(cluster: MixedCluster) -> None:
        await replicated(cluster, cluster.controller)
        # The whole cluster at once: nobody is there who could tell a node what it needs to log in.
        await cluster.stop()
        await cluster.start()
        await until(lambda: cluster.in_sync("orders", 3), timeout_s=30)

    walk_in(lambda: MixedCluster(brokers, controllers, provider), steps)


def test_brokers_log_in_to_a_controller_that_is_alone_by_scram(provider: IdentityProvider) -> None:
    roles = {1: "controller", 2: "broker", 3: "broker", 4: "broker"}

    async def steps(cluster: MixedCluster) -> None:
        await replicated(cluster, 3)
        await cluster.stop()
        await cluster.start()
        await until(lambda: cluster.in_sync("orders", 3), timeout_s=30)

    walk_in(lambda: MixedCluster("SCRAM-SHA-256", "SCRAM-SHA-512", provider, roles), steps)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_several_controllers_by_scram_are_refused(mechanism: str, provider: IdentityProvider) -> None:
    with pytest.raises(BadSettings, match="cannot log in to each other by it") as found:
        MixedCluster("PLAIN", mechanism, provider).settings(1)
    assert mechanism in str(found.value)
    # Brokers may, where controllers have another way among themselves.
    MixedCluster("PLAIN", mechanism, provider, {1: "controller", 2: "controller", 3: "broker"}).settings(3)
