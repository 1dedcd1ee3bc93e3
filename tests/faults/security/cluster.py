"""Three nodes whose listeners are all SASL_SSL. Nodes show each other certificates and log in besides.

| listener | who comes | login |
|---|---|---|
| CLIENTS | clients | SCRAM-SHA-512, and PLAIN for the judges |
| REPLICATION | brokers, with a node's certificate | SCRAM-SHA-512, of the cluster's own users |
| CONTROLLER | brokers and controllers, with a node's certificate | PLAIN: it has to work before anything is known |
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from penstock.certificates import SecuredCluster as Certificates
from penstock.certificates.node_settings import AUTHORIZER, CLIENTS, CONTROLLER, REPLICATION
from penstock.model.secret import Secret
from tests.compat.cluster import ClusterNode, Host, loopback_host
from tests.compat.processes import free_ports
from tests.compat.wire import Connection
from tests.faults.cluster.logins import Login
from tests.faults.cluster.watched import WatchedCluster
from tests.faults.security.entry import Person, SecuredConnection, tls_context

ADMIN = Person("admin", "admin-secret")
WATCHER = Person("watcher", "watcher-secret")
STRANGER = Person("stranger", "stranger-secret")
"""Who can log in, and may do nothing."""
TURNCOAT = Person("turncoat", "turncoat-secret")
"""Who may do something, and then may not."""
NODE_PASSWORD = "between-nodes"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def node_user(node_id: int) -> Person:
    return Person(f"node-{node_id}", NODE_PASSWORD)


def _users(*people: Person) -> str:
    return " ".join(f'user_{person.name}="{person.password}"' for person in people)


class SecuredCluster(WatchedCluster):
    """Everything that it needs to be one is in `home/security`; nodes read their certificates from there."""

    def __init__(
        self,
        home: Path,
        nodes: int = 3,
        *,
        properties: Mapping[str, str] | None = None,
        host: Callable[[int], Host] = loopback_host,
    ) -> None:
        self._replication_ports: dict[int, int] = {}
        super().__init__(home, nodes, properties=properties, host=host)
        self.certificates = Certificates(home / "security")
        names = {node.node_id: [node.host.address, "localhost"] for node in self.nodes.values()}
        self.certificates.prepare(self.cluster_id, names, now=datetime.now(UTC))
        self.certificates.admin.write(self.bootstrap.split(","), Secret(ADMIN.password))

    # -- nodes

    def replication_port(self, node: ClusterNode) -> int:
        if node.node_id not in self._replication_ports:
            (self._replication_ports[node.node_id],) = free_ports(1)
        return self._replication_ports[node.node_id]

    def properties(self, node: ClusterNode) -> dict[str, str]:
        every = [node_user(node_id) for node_id in self.nodes]
        own = node_user(node.node_id)
        me = f'username="{own.name}" password="{own.password}"'
        directory = self.certificates.directory
        ports = {CLIENTS: node.host.port, REPLICATION: self.replication_port(node)}
        ports[CONTROLLER] = node.host.controller_port
        return {
            **super().properties(node),
            "listeners": ",".join(f"{name}://{node.host.address}:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": ",".join(f"{name}:SASL_SSL" for name in ports),
            "inter.broker.listener.name": REPLICATION,
            "controller.listener.names": CONTROLLER,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory.node(node.node_id)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory.trusted),
            "listener.name.replication.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.clients.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.clients.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
            "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN} {_users(WATCHER, STRANGER, TURNCOAT)};",
            "listener.name.replication.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.replication.scram-sha-512.sasl.jaas.config": f"{SCRAM} {me};",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": f"{PLAIN} {me} {_users(*every)};",
            "authorizer.class.name": AUTHORIZER,
            "super.users": ";".join(f"User:{person.name}" for person in (*every, ADMIN, WATCHER)),
        }

    def format_command(self, node: ClusterNode, voters: str) -> list[str]:
        words = super().format_command(node, voters)
        for person in (ADMIN, *(node_user(node_id) for node_id in self.nodes)):
            words += ["--add-scram", f"SCRAM-SHA-512=[name={person.name},password={person.password}]"]
        return words

    # -- who comes

    def trusting(self, certificate: Path | None = None) -> ssl.SSLContext:
        return tls_context(self.certificates.directory.trusted, certificate)

    def connection(self, node: ClusterNode, *, timeout_s: float = 3.0) -> Connection:
        return SecuredConnection(node.host.address, node.host.port, self.trusting(), WATCHER, timeout_s=timeout_s)

    def login(self, person: Person) -> Login:
        trusted = str(self.certificates.directory.trusted)
        return Login(
            {
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": trusted,
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": person.name,
                "sasl.password": person.password,
            },
            {"username": person.name, "password": person.password, "cafile": trusted},
        )
