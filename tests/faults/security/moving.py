"""The guide from an open cluster to a secured one, as something that can be carried out: block by block, on processes.

A block of properties that is named `restart-N` is a rolling restart with these lines; one with the name of a file is
that file; commands are run where they stand, `scp` as a copy to each node. Hosts, directories and the cluster's id are
those of this run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from penstock.model.config.files import parse_properties
from tests.cli.command import penstock
from tests.compat.cluster import ClusterNode, Host
from tests.compat.processes import wait_for
from tests.docs.pages import ROOT, Block, blocks
from tests.faults.cluster.watched import WatchedCluster

GUIDE = ROOT / "docs" / "guides" / "open-to-secured.md"
PLAIN_PORT, SECURED_PORT = 9092, 9095
UNDER_REPLICATED = "kafka_topic_partition_under_replicated_partition"
READY_S = 60.0


def own_host(node_id: int) -> Host:
    """An address of the loopback for each node of each run, so that ports can be those of the guide."""
    run_number, of_run = divmod(os.getpid(), 128)
    return Host(f"kafka-{node_id}", f"127.{64 + of_run}.{run_number % 250}.{node_id}", PLAIN_PORT, 9093)


class MovingCluster(WatchedCluster):
    """Nodes with the properties of the guide's blocks so far."""

    def __init__(self, home: Path) -> None:
        self.lines: dict[str, str] = {}
        super().__init__(home, host=own_host)
        self.port = PLAIN_PORT

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{node.host.address}:{self.port}" for node in self.nodes.values())

    def properties(self, node: ClusterNode) -> dict[str, str]:
        guide = {name: self.here(value, node) for name, value in self.lines.items()}
        return {
            **self.given,
            "penstock.admin.listener": f"{node.host.address}:{self.admin_port(node)}",
            **guide,
            "node.id": str(node.node_id),
        }

    def here(self, text: str, node: ClusterNode) -> str:
        """A text of `kafka-1`, as it is on a node: lists of all nodes stay what they are, the rest is its own."""
        listing = all(f"kafka-{node_id}" in text for node_id in self.nodes)
        if not listing:
            text = text.replace("kafka-1", f"kafka-{node.node_id}")
        text = text.replace("/var/lib/penstock", str(node.home)).replace("CLUSTER_ID", self.cluster_id)
        return re.sub(r"kafka-(\d)", lambda found: self.nodes[int(found[1])].host.address, text)

    def serves(self, node: ClusterNode) -> bool:
        try:
            return self.told(node).ready
        except OSError:
            return False

    def write_properties(self, node: ClusterNode) -> None:
        node.config.write_text("".join(f"{name}={value}\n" for name, value in self.properties(node).items()))

    def wait_until_in_sync(self) -> None:
        def in_sync() -> bool:
            try:
                pages = [self.numbers(node) for node in self.nodes.values()]
            except OSError:
                return False
            behind = any(value for page in pages for name, value in page.items() if name.startswith(UNDER_REPLICATED))
            return not behind and all(self.serves(node) for node in self.nodes.values())

        try:
            wait_for("all to be in sync", in_sync, timeout_s=READY_S, pause_s=0.1)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.last_words(30)}") from None

    def active_controller(self) -> int:
        return next((told.leader for told in map(self.told, self.nodes.values()) if told.leader > 0), 0)


def steps() -> Iterator[Block]:
    """What a reader of the guide does, in its order. How one waits is said once and done always."""
    for block in blocks(GUIDE):
        if "--watch" not in block.text:
            yield block


def lines_of(block: Block) -> dict[str, str]:
    return dict(parse_properties(block.text))


def run(cluster: MovingCluster, block: Block) -> list[str]:
    """The commands of a block, as one types them beside the certificates; answers what they printed."""
    printed = []
    for line in block.text.splitlines():
        command = line.removeprefix("$ ")
        if command.startswith("scp "):
            _copy(cluster, command)
            continue
        said, _, words = cluster.here(command, cluster.nodes[1]).rpartition(" | ")
        done = penstock(*shlex.split(words)[1:], stdin=said.removeprefix("echo ") + "\n", cwd=cluster.home)
        assert done.code == 0, f"{command}\n{done}"
        printed.append(done.out)
    return printed


def _copy(cluster: MovingCluster, command: str) -> None:
    _, source, target = command.split()
    for node in cluster.nodes.values():
        of_node = source.replace("node-1", f"node-{node.node_id}")
        shutil.copy(cluster.home / of_node, node.home / Path(target).name)
