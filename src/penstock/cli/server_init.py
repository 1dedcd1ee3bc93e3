"""`penstock server init`: the directories of all nodes of a new cluster on hosts of their own, made offline.

DIR/cluster.json    which nodes there are, so that others can be added later: brokers, and no voters
DIR/node-I/         what goes to the host of node I: server.properties, node.pem, ca.pem, secrets.properties and a
                    formatted log directory
DIR/security/       what stays with whoever runs the cluster: the authorities, the nodes' secret, and the first
                    user's files
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.model.errors import PenstockError
from penstock.whole_files import write_whole

if TYPE_CHECKING:
    from penstock.certificates import SecuredCluster
    from penstock.certificates.node_settings import Ports
    from penstock.metadata.records import VersionedRecord
    from penstock.model.config import BrokerSettings

CLIENT_PORT: Final = 9092
CONTROLLER_STEP, REPLICATION_STEP = 1, 2
NODE_ID_MAX: Final = (1 << 31) - 1
PORT_MAX: Final = 65_535
CONFIG, KEY, TRUSTED, SECRETS, DATA = "server.properties", "node.pem", "ca.pem", "secrets.properties", "data"
KNOWN: Final = "cluster.json"
_NODE: Final = re.compile(r"(\d+)=(\[[0-9A-Fa-f:.]+\]|[^\s:,=]+)(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node, the host it will run on, and the port of its clients."""

    node_id: int
    host: str
    port: int = CLIENT_PORT

    @property
    def address(self) -> str:
        return self._at(self.port)

    @property
    def controller_address(self) -> str:
        return self._at(self.port + CONTROLLER_STEP)

    def _at(self, port: int) -> str:
        return f"[{self.host}]:{port}" if ":" in self.host else f"{self.host}:{port}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be made. `home` is where a node's directory will be on its host; None leaves it where it is made."""

    folder: Path
    nodes: tuple[PlannedNode, ...]
    """All of the cluster."""
    new: tuple[PlannedNode, ...]
    """Those that are made now."""
    controllers: tuple[PlannedNode, ...]
    secure: bool
    home: Path | None = None
    cluster_id: str = ""
    """Empty of a cluster that is made now."""

    @property
    def bootstrap(self) -> list[str]:
        return [node.address for node in self.nodes]

    def directory(self, node: PlannedNode) -> Path:
        return self.folder / f"node-{node.node_id}"

    def home_of(self, node: PlannedNode) -> Path:
        return self.home or self.directory(node)

    def ports(self, node: PlannedNode) -> Ports:
        from penstock.certificates.node_settings import Ports

        controller = node.port + CONTROLLER_STEP if node in self.controllers else None
        return Ports(node.port, node.port + REPLICATION_STEP, controller)


def parse_node(text: str) -> PlannedNode:
    """`1=host1` or `1=host1:9092`. ValueError says what is wrong."""
    found = _NODE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not ID=HOST or ID=HOST:PORT")
    node_id, port = int(found[1]), int(found[3] or CLIENT_PORT)
    if node_id > NODE_ID_MAX:
        raise ValueError(f"{node_id} is no id of a node")
    if not 0 < port <= PORT_MAX - REPLICATION_STEP:
        raise ValueError(f"{port} cannot be a port with {REPLICATION_STEP} more after it")
    return PlannedNode(node_id, found[2].strip("[]"), port)


def check_distinct(nodes: Sequence[PlannedNode]) -> None:
    """ValueError when two nodes have one id, or one port of one host."""
    if len({node.node_id for node in nodes}) < len(nodes):
        raise ValueError("two nodes have the same id")
    taken: set[tuple[str, int]] = set()
    for node in nodes:
        ports = {(node.host, node.port + step) for step in (0, CONTROLLER_STEP, REPLICATION_STEP)}
        if taken & ports:
            raise ValueError(f"node {node.node_id} shares a port of {node.host}; each has its own and the two after it")
        taken |= ports


def plan_of(folder: Path, new: Sequence[PlannedNode], *, secure: bool, home: Path | None = None) -> Plan:
    """A new cluster, or more nodes of the one that was made in the folder. ValueError when they do not go together."""
    try:
        known = json.loads((folder / KNOWN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        check_distinct(new)
        # An odd number of the first: a fourth adds nothing but another one that may fail.
        voters = 5 if len(new) >= 5 else 3 if len(new) >= 3 else 1
        return Plan(folder, tuple(new), tuple(new), tuple(new[:voters]), secure, home)
    if secure and not known["secure"]:
        raise ValueError(f"the cluster in {folder} was made without --secure")
    old = tuple(PlannedNode(**each) for each in known["nodes"])
    check_distinct([*old, *new])
    controllers = tuple(each for each in old if each.node_id in known["controllers"])
    return Plan(folder, (*old, *new), tuple(new), controllers, known["secure"], home, known["cluster_id"])


def node_properties(plan: Plan, node: PlannedNode, cluster_id: str) -> dict[str, str]:
    """The server.properties of a node, for its host."""
    from penstock.certificates.node_settings import listeners
    from penstock.server.launch import admin_port

    ports, home = plan.ports(node), plan.home_of(node)
    controllers = ",".join(each.controller_address for each in plan.controllers)
    replicas, min_isr = str(min(3, len(plan.nodes))), "2" if len(plan.nodes) >= 3 else "1"
    return {
        "node.id": str(node.node_id),
        "process.roles": "broker" if ports.controller is None else "broker,controller",
        "listeners": listeners(_bound(node.host), ports),
        "advertised.listeners": listeners(node.host, ports),
        "controller.quorum.bootstrap.servers": controllers,
        "log.dirs": str(home / DATA),
        # Goes with the clients' port, so that nodes which share a host have one each.
        "penstock.admin.listener": f"127.0.0.1:{admin_port(node.port)}",
        "default.replication.factor": replicas,
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min_isr,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": min_isr,
        "penstock.audit.topic.replication.factor": replicas,
        **_security(plan, home, cluster_id),
    }


def _security(plan: Plan, home: Path, cluster_id: str) -> dict[str, str]:
    from penstock.certificates.client_files import ADMIN
    from penstock.certificates.node_settings import CLIENTS, CONTROLLER, REPLICATION, security_settings

    if plan.secure:
        node_ids = [node.node_id for node in plan.nodes]
        stores = {"key_store": home / KEY, "trust_store": home / TRUSTED}
        secrets = secured_cluster(plan).secrets.settings(at=home / SECRETS)
        return {**security_settings(cluster_id, node_ids, admin=ADMIN, **stores), **secrets}
    return {
        "listener.security.protocol.map": f"{CLIENTS}:PLAINTEXT,{REPLICATION}:PLAINTEXT,{CONTROLLER}:PLAINTEXT",
        "inter.broker.listener.name": REPLICATION,
        "controller.listener.names": CONTROLLER,
    }


def secured_cluster(plan: Plan) -> SecuredCluster:
    from penstock.certificates import SecuredCluster

    return SecuredCluster(plan.folder / "security")


def _bound(host: str) -> str:
    """A host's name may mean another address on the host itself, so it listens on all; but never beyond a loopback."""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    return host if loopback else "0.0.0.0"


def make(plan: Plan) -> tuple[str, SecuredCluster | None]:
    """Makes everything; answers with the cluster's id. Refuses to write over a node."""
    from random import SystemRandom

    from penstock.server.formatting import new_cluster_id

    for node in plan.new:
        if plan.directory(node).exists():
            raise PenstockError(f"{plan.directory(node)} is there already, and is not written over")
    secured = secured_cluster(plan) if plan.secure else None
    cluster_id = plan.cluster_id or (secured and secured.cluster_id()) or new_cluster_id(SystemRandom())
    records: Sequence[VersionedRecord] = ()
    if secured is not None:
        records = _secure(plan, secured, cluster_id)
    _format(plan, cluster_id, records)
    for node in plan.new:
        _write_files(plan, node, cluster_id, secured)
    _remember(plan, cluster_id)
    return cluster_id, secured


def _remember(plan: Plan, cluster_id: str) -> None:
    known = {
        "cluster_id": cluster_id,
        "secure": plan.secure,
        "nodes": [asdict(node) for node in plan.nodes],
        "controllers": [node.node_id for node in plan.controllers],
    }
    write_whole(plan.folder / KNOWN, json.dumps(known, indent=2) + "\n")


def _secure(plan: Plan, secured: SecuredCluster, cluster_id: str) -> Sequence[VersionedRecord]:
    from penstock.certificates.client_files import ADMIN
    from penstock.certificates.node_settings import MECHANISMS
    from penstock.certificates.users import scram_records

    hosts = {node.node_id: [node.host] for node in plan.new}
    secured.prepare(cluster_id, hosts, now=datetime.now(UTC))
    if plan.cluster_id:
        # Nodes that an earlier release made have no secret in common, and go on without one.
        secured.reach(plan.bootstrap)
        return ()
    secured.secrets.make()
    return scram_records(ADMIN, secured.invite(plan.bootstrap), MECHANISMS)


def _format(plan: Plan, cluster_id: str, records: Sequence[VersionedRecord]) -> None:
    from penstock.server.launch import format_node, new_voters

    every = {node: _settings_here(plan, node, cluster_id) for node in plan.new}
    voters = None if plan.cluster_id else new_voters([every[node] for node in plan.controllers])
    for node, settings in every.items():
        (plan.directory(node) / DATA).mkdir(mode=0o700, parents=True)
        format_node(settings, cluster_id, ignore_formatted=True, voters=voters, records=records)


def _settings_here(plan: Plan, node: PlannedNode, cluster_id: str) -> BrokerSettings:
    """What the node will run with, but with its data where it is made."""
    from penstock.model.config import BrokerSettings

    here = {"log.dirs": str(plan.directory(node) / DATA)}
    return BrokerSettings.load({**node_properties(plan, node, cluster_id), **here})


def _write_files(plan: Plan, node: PlannedNode, cluster_id: str, secured: SecuredCluster | None) -> None:
    from penstock.certificates.files import create_private
    from penstock.certificates.node_settings import properties_text

    directory = plan.directory(node)
    if secured is not None:
        create_private(directory / KEY, secured.directory.node(node.node_id).read_bytes())
        create_private(directory / TRUSTED, secured.directory.trusted.read_bytes())
        if secured.secrets.path.exists():
            create_private(directory / SECRETS, secured.secrets.path.read_bytes())
    # Last: a directory with it is whole.
    heading = f"Node {node.node_id} of cluster {cluster_id}, made by `penstock server init`."
    create_private(directory / CONFIG, properties_text(node_properties(plan, node, cluster_id), heading).encode())


def described(plan: Plan, cluster_id: str, secured: SecuredCluster | None) -> dict[str, Any]:
    """What was made, for programs."""
    nodes = [
        {
            "node_id": node.node_id,
            "host": node.host,
            "address": node.address,
            "controller": node in plan.controllers,
            "directory": str(plan.directory(node)),
            "home": str(plan.home_of(node)),
        }
        for node in plan.new
    ]
    told: dict[str, Any] = {"cluster_id": cluster_id, "nodes": nodes}
    if secured is not None:
        told["security"] = {
            "ca": str(secured.directory.trusted),
            "fingerprint": secured.fingerprint,
            "admin": str(secured.admin.java),
            "admin_librdkafka": str(secured.admin.librdkafka),
        }
    return told
