"""What is done to a cluster to measure it: leaders found, load put on them, a leader killed, partitions counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import psutil

from bench.brokers import Usage
from tests.compat import wire
from tests.compat.cluster import Cluster, Partition, view
from tests.compat.processes import wait_for

FAILOVER_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Contender:
    """A cluster under its name in the results."""

    name: str
    cluster: Cluster

    def usage(self) -> Usage:
        """What all its nodes have used so far, with their helper processes."""
        cpu_s, rss_bytes = 0.0, 0
        for node in self.cluster.nodes.values():
            root = psutil.Process(node.pid)
            family = [root, *root.children(recursive=True)]
            ended = root.cpu_times()
            cpu_s += sum(each.cpu_times().user + each.cpu_times().system for each in family)
            cpu_s += ended.children_user + ended.children_system
            rss_bytes += sum(process.memory_info().rss for process in family)
        return Usage(cpu_s, rss_bytes)

    def new_topic(self, topic: str, partitions: int) -> None:
        self.cluster.new_topic(topic, partitions, 3, file_delete_delay_ms="1000")
        self.cluster.wait_until_whole()
        # A broker of Kafka's may tell that it leads a moment before it does.
        for index, address in enumerate(self.leaders(topic, partitions)):
            wait_for(f"{topic}-{index} to be led", partial(_leads, address, topic, index), timeout_s=30)

    def drop_topic(self, topic: str) -> None:
        wire.delete_topic(self.cluster.brokers[0].address, topic)

    def leaders(self, topic: str, partitions: int) -> list[str]:
        """The address of each partition's leader, in their order."""
        found = {each.index: each.leader for each in self.cluster.partitions(topic)}
        return [self.cluster.nodes[found[index]].address for index in range(partitions)]


def _leads(address: str, topic: str, partition: int) -> bool:
    """Whether a broker answers for a partition as its leader."""
    with wire.connect(address) as connection:
        try:
            wire.fetch_reply(connection.call(wire.fetch_request(topic, partition, 0, max_wait_ms=0)))
        except wire.BrokerError:
            return False
    return True


def seconds_to_fail_over(cluster: Cluster, topic: str, batch: bytes) -> float:
    """Kills the leader of partition 0 and returns the time until a write is acknowledged by all of the others' choice.

    The prober asks brokers in turn who leads, as clients do, only more often: so the figure is the cluster's alone.
    """
    leader = cluster.leader_of(topic)
    rest = [node for node in cluster.brokers if node.node_id != leader]
    with wire.connect(cluster.nodes[leader].address) as connection:
        wire.produce(connection, topic, 0, batch)
    began = time.perf_counter()
    cluster.nodes[leader].kill()
    wait_for(
        "a write at a new leader",
        lambda: any(_acknowledged(cluster, node.address, topic, batch, leader) for node in rest),
        timeout_s=FAILOVER_TIMEOUT_S,
        pause_s=0.005,
    )
    took_s = time.perf_counter() - began
    cluster.start(leader)
    cluster.wait_until_whole(timeout_s=120)
    return took_s


def _acknowledged(cluster: Cluster, address: str, topic: str, batch: bytes, dead: int) -> bool:
    try:
        (partition,) = (each for each in view(address, [topic]).partitions if each.index == 0)
        if partition.leader in (-1, dead):
            return False
        with wire.connect(cluster.nodes[partition.leader].address) as connection:
            wire.produce(connection, topic, 0, batch)
            return True
    except (OSError, ValueError, wire.BrokerError):
        return False


def create_many(cluster: Cluster, partitions: int, each: int) -> None:
    """Topics of `each` partitions with three replicas, until there are so many; returns when all brokers know all."""
    for number in range(partitions // each):
        cluster.new_topic(f"many-{number}", each, 3)
    wait_for("all partitions to be whole", lambda: not cluster.trouble(), timeout_s=300, pause_s=0.2)


def wait_until(cluster: Cluster, what: str, holds: Callable[[Partition], bool], timeout_s: float = 300) -> None:
    """Returns when it holds for every partition in the eyes of every broker that runs."""
    wait_for(
        what,
        lambda: all(holds(each) for seen in cluster.views() for each in seen.partitions),
        timeout_s=timeout_s,
        pause_s=0.05,
    )


def metadata_log_bytes(cluster: Cluster) -> int:
    """The metadata log and snapshots of one node."""
    directory = cluster.brokers[0].data_dir / "__cluster_metadata-0"
    return sum(path.stat().st_size for path in directory.iterdir() if path.suffix in (".log", ".checkpoint"))
