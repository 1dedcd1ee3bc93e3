"""The cluster in a folder that `penstock dev --nodes N` keeps: `cluster.json`, and for each node I `node-I.properties`,
its data in `node-I/`, its log in `node-I.log` and its process in `node-I.pid`.

The first N nodes are brokers and voters of the metadata quorum; those that are added later are brokers only. One that
was decommissioned is none of the nodes any more: the commands that take it out of the cluster write that down here.
A secured cluster has its certificates and its first user's files in `security/` (`dev_secure.py`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.dev_ports import HOST, NODES_MAX, PORT_MAX, free_ports, is_free, lasting_ports
from penstock.cli.dev_processes import NodeProcess
from penstock.model.errors import PenstockError
from penstock.model.units import count
from penstock.whole_files import OWNERS_ALONE, write_whole

if TYPE_CHECKING:
    from penstock.metadata.records import VersionedRecord

ADMIN_LISTENER = "penstock.admin.listener"
EARLIER_CONTROLLER_STEP = 10_000
"""Clusters of earlier releases have their controllers so much above, or below, the ports of their brokers."""


@dataclass(slots=True)
class DevCluster:
    """What `cluster.json` says. `port` is that of node 1, node I listens on port + I - 1."""

    folder: Path
    cluster_id: str
    port: int
    voters: int
    nodes: list[int]
    overrides: dict[str, str] = field(default_factory=dict)
    controller_ports: list[int] = field(default_factory=list)
    leaving: list[int] = field(default_factory=list)
    """Nodes that were emptied and wait to be stopped and forgotten."""
    replication_ports: dict[str, int] = field(default_factory=dict)
    """Where brokers of a secured cluster reach each other, by node; clients have the other port. Empty in an open one.
    """

    def __post_init__(self) -> None:
        if not self.controller_ports:
            step = EARLIER_CONTROLLER_STEP
            own = range(self.port, self.port + self.voters)
            self.controller_ports = [each + step if each + step <= PORT_MAX else each - step for each in own]

    @property
    def bootstrap(self) -> str:
        return ",".join(self.address(node) for node in self.nodes)

    @property
    def secure(self) -> bool:
        return bool(self.replication_ports)

    def address(self, node_id: int) -> str:
        return f"{HOST}:{self.port + node_id - 1}"

    def asked_at(self, addresses: str) -> str:
        """The options with which commands reach these addresses. Files of .penstock are found without being named."""
        found = not self.secure or self.folder == Path(".penstock").absolute()
        return f"-b {addresses}" if found else f"-b {addresses} --data-dir {self.folder}"

    def process(self, node_id: int) -> NodeProcess:
        return NodeProcess(self.folder, node_id)

    def processes(self) -> list[NodeProcess]:
        return [self.process(node_id) for node_id in self.nodes]

    def save(self) -> None:
        kept = {name: value for name, value in asdict(self).items() if name != "folder"}
        if not self.secure:
            del kept["replication_ports"]  # as earlier releases know it
        # Overrides may hold secrets, such as `delegation.token.secret.key`; so do the nodes' files below.
        write_whole(self.folder / "cluster.json", json.dumps(kept, indent=2) + "\n", mode=OWNERS_ALONE)

    def properties(self, node_id: int) -> dict[str, str]:
        from penstock.server.launch import dev_properties

        found = dev_properties(
            str(self.folder), port=self.port, overrides=self._secured(node_id) if self.secure else self.overrides,
            node_id=node_id, nodes=self.voters, controller_ports=self.controller_ports,
        )  # fmt: skip
        if ADMIN_LISTENER not in self.overrides:
            host, _, port = found[ADMIN_LISTENER].rpartition(":")
            # Nobody chose the admin port of a node for development, so a taken one is no reason not to start.
            found[ADMIN_LISTENER] = f"{host}:{port if is_free(int(port), host) else 0}"
        return found

    def _secured(self, node_id: int) -> dict[str, str]:
        """What makes a node of a secured cluster one, and what was asked for."""
        from penstock.certificates.cluster_secrets import overridden
        from penstock.certificates.local import LocalSecurity
        from penstock.certificates.node_settings import Ports

        controller = self.controller_ports[node_id - 1] if node_id <= self.voters else None
        ports = Ports(self.port + node_id - 1, self.replication_ports[str(node_id)], controller)
        return overridden(LocalSecurity(self.folder).settings(self.cluster_id, node_id, ports), self.overrides)

    def check_known(self, *node_ids: int) -> None:
        """PenstockError when the others of a secured cluster would not take one of these for a node."""
        from penstock.certificates.local import KNOWN_NODES

        if max(node_ids) > KNOWN_NODES:
            raise PenstockError(f"a secured cluster on one machine has nodes 1 to {KNOWN_NODES}, not {max(node_ids)}")

    def check_ports(self, *node_ids: int) -> None:
        """PenstockError when something else has a port of these nodes, none of which runs."""
        if "listeners" in self.overrides:
            return
        for node_id in node_ids:
            ports = {"": self.port + node_id - 1}
            if node_id <= self.voters:
                ports["controller's "] = self.controller_ports[node_id - 1]
            if str(node_id) in self.replication_ports:
                ports["replication "] = self.replication_ports[str(node_id)]
            for whose, port in ports.items():
                if not is_free(port):
                    raise PenstockError(
                        f"cannot listen on {HOST}:{port}, the {whose}port of node {node_id}: Address already in use. "
                        f"The nodes of {self.folder} know each other by their ports, so this one has to be free again; "
                        f"`ss -tanp sport = :{port}` shows who has it"
                    )

    def write_config(self, node_id: int) -> None:
        lines = [f"{name}={value}" for name, value in self.properties(node_id).items()]
        write_whole(self.process(node_id).config, "\n".join([*lines, ""]), mode=OWNERS_ALONE)

    def agree(self, *, nodes: int | None, port: int | None, overrides: Mapping[str, str]) -> None:
        """Takes what a later start asks for, if it does not speak against what the cluster is."""
        if nodes is not None and nodes != len(self.nodes):
            raise PenstockError(
                f"{self.folder} has {count('node', len(self.nodes))}, not {nodes}: run it without --nodes,"
                f" and add one with `penstock dev start {max(self.nodes) + 1} --data-dir {self.folder}`"
            )
        if port and port != self.port:
            raise PenstockError(
                f"the nodes of {self.folder} listen on {self.port} and up, and know each other by that;"
                " run them without --port"
            )
        self.overrides.update(overrides)
        if self.secure:
            from penstock.certificates.local import LocalSecurity

            # Certificates that end soon are renewed here. All nodes start now, so one that an earlier release made
            # gets the secret of the cluster together with the others.
            security = LocalSecurity(self.folder)
            security.prepare_nodes(self.nodes, self.cluster_id)
            security.secrets.make()
        for node_id in self.nodes:
            self.write_config(node_id)
        self.save()

    def add(self, node_id: int) -> None:
        """Makes a new node of this cluster: a broker, and no voter."""
        from penstock.server.launch import format_node, load_settings

        if self.secure:
            from penstock.certificates.local import LocalSecurity

            self.check_known(node_id)
            LocalSecurity(self.folder).prepare_nodes([node_id], self.cluster_id)
            taken = range(self.port, self.port + NODES_MAX)
            self.replication_ports.setdefault(str(node_id), free_ports(1, apart_from=taken)[0])
        self.write_config(node_id)
        format_node(
            load_settings(str(self.process(node_id).config)), self.cluster_id, ignore_formatted=True, standalone=False
        )
        self.nodes = sorted({*self.nodes, node_id})
        self.save()
        if self.secure:
            from penstock.certificates.local import LocalSecurity

            LocalSecurity(self.folder).reach(self.bootstrap.split(","))

    def stay(self, node_id: int) -> None:
        """A node that was started again is not on its way out."""
        if node_id in self.leaving:
            self.leaving.remove(node_id)
            self.save()

    def leave(self, node_id: int) -> None:
        """The cluster may forget this node as soon as it is stopped."""
        if node_id in self.nodes and node_id not in self.leaving:
            self.leaving.append(node_id)
            self.save()

    def remove(self, node_id: int) -> None:
        """The cluster has forgotten this node, so nobody starts it any more."""
        self.nodes = [each for each in self.nodes if each != node_id]
        self.leaving = [each for each in self.leaving if each != node_id]
        self.save()


def find(folder: Path) -> DevCluster | None:
    """The cluster of a folder, or None when it has none."""
    folder = folder.absolute()
    try:
        text = (folder / "cluster.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return DevCluster(folder, **json.loads(text))
    except (TypeError, ValueError) as broken:
        raise PenstockError(f"{folder}/cluster.json is not as `penstock dev` writes it: {broken}") from None


def of_directories(paths: Iterable[str], cluster_id: str, node_id: int) -> DevCluster | None:
    """The cluster that `penstock dev` keeps on this machine, if brokers with these log directories are of it."""
    for folder in sorted({Path(path).parent for path in paths}):
        try:
            cluster = find(folder)
        except (OSError, PenstockError):
            continue
        if cluster is not None and cluster.cluster_id == cluster_id and node_id in cluster.nodes:
            return cluster
    return None


def found_in(folder: Path) -> DevCluster:
    cluster = find(folder)
    if cluster is None:
        raise PenstockError(
            f"{folder} has no cluster; `penstock dev --nodes 3 --data-dir {folder}` makes one and runs it"
        )
    return cluster


def create(folder: Path, *, nodes: int, port: int, overrides: Mapping[str, str], secure: bool = False) -> DevCluster:
    """A new cluster: configuration and formatted folders of all its nodes. A port of 0 is chosen here."""
    folder = folder.absolute()
    if (folder / "node-1").exists():
        raise PenstockError(
            f"{folder} holds a single node, which does not become a cluster by itself: take another --data-dir,"
            " or run it without --nodes"
        )
    if port + nodes - 1 > PORT_MAX:
        raise PenstockError(f"there are no {count('port', nodes)} from {port} on; choose a lower one with --port")
    first = port or _free_base(nodes)
    own = range(first, first + nodes)
    for each in own:
        # Before anything is written: the cluster will know its nodes by their ports.
        if not is_free(each):
            raise PenstockError(f"cannot listen on {HOST}:{each}: Address already in use; choose with --port")
    chosen = free_ports(2 * nodes if secure else nodes, apart_from=own)
    cluster = DevCluster(folder, "", first, nodes, list(range(1, nodes + 1)), dict(overrides), chosen[:nodes])
    folder.mkdir(parents=True, exist_ok=True)
    records = _secure(cluster, chosen[nodes:]) if secure else ()
    for node_id in cluster.nodes:
        cluster.write_config(node_id)
    cluster.cluster_id = _format(cluster, records)
    # Last, so that a folder with it is a whole cluster.
    cluster.save()
    return cluster


def _secure(cluster: DevCluster, replication_ports: Sequence[int]) -> Sequence[VersionedRecord]:
    """Makes a new cluster a secured one; answers with what it starts with."""
    from penstock.certificates.local import LocalSecurity

    security = LocalSecurity(cluster.folder)
    cluster.replication_ports = {str(node_id): port for node_id, port in enumerate(replication_ports, 1)}
    cluster.check_known(*cluster.nodes)
    cluster.cluster_id = security.prepare_nodes(cluster.nodes)
    security.secrets.make()
    for node_id in cluster.nodes:
        (cluster.folder / f"node-{node_id}").mkdir(mode=0o700)
    return security.first_user(cluster.bootstrap.split(","))


def _format(cluster: DevCluster, records: Sequence[VersionedRecord]) -> str:
    """Formats the folders of all nodes, each of which is told who votes; answers the cluster's id."""
    from random import SystemRandom

    from penstock.server.formatting import new_cluster_id
    from penstock.server.launch import format_node, load_settings, new_voters

    every = [load_settings(str(cluster.process(node_id).config)) for node_id in cluster.nodes]
    voters, cluster_id = new_voters(every), cluster.cluster_id or new_cluster_id(SystemRandom())
    for settings in every:
        format_node(settings, cluster_id, ignore_formatted=True, voters=voters, records=records)
    return cluster_id


def _free_base(nodes: int) -> int:
    """A port that is free with those after it."""
    lasting = set(lasting_ports())
    # In any order: whoever else looks for ports at this moment shall not find the same ones.
    for base in random.sample(sorted(lasting), len(lasting)):
        wanted = range(base, base + nodes)
        if lasting.issuperset(wanted) and all(map(is_free, wanted)):
            return base
    raise PenstockError(f"there are no {nodes} free ports in a row; choose where they begin with --port")
