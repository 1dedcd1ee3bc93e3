"""What a secured node runs with: texts of properties, under Kafka's names, that Apache Kafka would take too.

| listener | protocol | who comes |
|---|---|---|
| CLIENTS | SASL_SSL | everybody else, by SCRAM |
| REPLICATION | SSL, certificates on both sides | the other brokers |
| CONTROLLER | SSL, certificates on both sides | brokers and controllers |

Nothing is allowed that no ACL allows, but to the nodes and to one user.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

CLIENTS, REPLICATION, CONTROLLER = "CLIENTS", "REPLICATION", "CONTROLLER"
MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Ports(NamedTuple):
    """Where a node listens. One without a port for controllers is no controller."""

    clients: int
    replication: int
    controller: int | None


def node_principal(node_id: int, cluster_id: str) -> str:
    """Whom a listener takes the holder of a node's certificate for. Neither part has anything to escape."""
    return f"User:CN=node-{node_id},O={cluster_id}"


def listeners(host: str, ports: Ports) -> str:
    """For `listeners` and `advertised.listeners`; the clients' first, because that is the one that people are told."""
    found = {CLIENTS: ports.clients, REPLICATION: ports.replication, CONTROLLER: ports.controller}
    shown = f"[{host}]" if ":" in host else host
    return ",".join(f"{name}://{shown}:{port}" for name, port in found.items() if port is not None)


def security_settings(
    cluster_id: str, node_ids: Iterable[int], *, admin: str, key_store: Path, trust_store: Path
) -> dict[str, str]:
    """Everything but the addresses. `node_ids` are all nodes of the cluster: each may do everything."""
    super_users = [*(node_principal(node_id, cluster_id) for node_id in node_ids), f"User:{admin}"]
    of_clients = f"listener.name.{CLIENTS.lower()}"
    return {
        "listener.security.protocol.map": f"{CLIENTS}:SASL_SSL,{REPLICATION}:SSL,{CONTROLLER}:SSL",
        "inter.broker.listener.name": REPLICATION,
        "controller.listener.names": CONTROLLER,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust_store),
        f"listener.name.{REPLICATION.lower()}.ssl.client.auth": "required",
        f"listener.name.{CONTROLLER.lower()}.ssl.client.auth": "required",
        f"{of_clients}.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        # Kafka wants to be told for every mechanism, although there is nothing to tell of this one.
        **{f"{of_clients}.{name.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;" for name in MECHANISMS},
        "authorizer.class.name": AUTHORIZER,
        "allow.everyone.if.no.acl.found": "false",
        # Subjects have commas in them, so the list has semicolons.
        "super.users": ";".join(super_users),
    }


def properties_text(pairs: dict[str, str], heading: str = "") -> str:
    """A `.properties` text that Java reads as it was meant and people can still read.

    Java's own writer would escape every colon and equals sign, which only keys need.
    """
    lines = [f"# {line}" for line in heading.splitlines()]
    return "\n".join([*lines, *(f"{name}={_value(value)}" for name, value in pairs.items()), ""])


def _value(text: str) -> str:
    pieces = []
    for position, char in enumerate(text):
        if char == "\\" or (char in " \t\f" and position == 0):
            pieces.append(f"\\{char}")
        elif " " <= char <= "~":
            pieces.append(char)
        else:  # Java reads files as Latin-1
            units = char.encode("utf-16-be", "surrogatepass")
            pieces.extend(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
    return "".join(pieces)
