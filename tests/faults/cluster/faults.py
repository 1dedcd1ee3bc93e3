"""What can go wrong, each fault with its own mending. Every one leaves a majority of nodes that can go on.

A fault takes the scene and a source of chance, and returns when it has been healed; the caller waits for a whole
cluster. Where a fault should not stop anybody's work, it waits for progress while it lasts.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.blocking import Admin
from penstock.model.ids import TopicPartition
from tests.compat.cluster import Cluster, ClusterNode, view
from tests.compat.processes import wait_for
from tests.faults.cluster.hosts import CLIENTS, Network, separate
from tests.faults.cluster.load import Load
from tests.faults.cluster.replicas import stored
from tests.faults.node import let_pass
from tests.patience import within

log = logging.getLogger(__name__)

DISK_BYTES = 192 << 20
MOVE_TIMEOUT_S = 60.0
CHECKED_FROM = 21
"""Where in a batch begins what its checksum covers."""


@dataclass
class Scene:
    """The cluster under load, and where it runs. `small_disk` is the node whose disk can be filled, if there is one."""

    cluster: Cluster
    network: Network
    load: Load
    small_disk: int = 0

    @property
    def topic(self) -> str:
        return self.load.topic

    def leader(self, chance: random.Random) -> ClusterNode:
        return self.cluster.nodes[self.cluster.leader_of(self.topic, chance.choice(list(self.load.partitions)))]

    def controller(self) -> ClusterNode:
        return self.cluster.nodes[self.cluster.controller()]

    def any_broker(self, chance: random.Random) -> ClusterNode:
        return chance.choice(self.cluster.brokers)

    def others(self, node: ClusterNode) -> list[int]:
        return [node_id for node_id in self.cluster.nodes if node_id != node.node_id]


Fault = Callable[[Scene, random.Random], None]


# -- processes


def _kill(scene: Scene, node: ClusterNode) -> None:
    log.info("kill -9 of node %d", node.node_id)
    node.kill()
    scene.load.wait_for_progress()
    scene.cluster.start(node.node_id)


def kill_leader(scene: Scene, chance: random.Random) -> None:
    _kill(scene, scene.leader(chance))


def kill_controller(scene: Scene, _chance: random.Random) -> None:
    _kill(scene, scene.controller())


def kill_any(scene: Scene, chance: random.Random) -> None:
    _kill(scene, chance.choice(list(scene.cluster.nodes.values())))


def kill_and_start_at_once(scene: Scene, chance: random.Random) -> None:
    """It is back before anybody has missed it."""
    node = scene.any_broker(chance)
    node.kill()
    scene.cluster.start(node.node_id)


def kill_all(scene: Scene, _chance: random.Random) -> None:
    """All processes die at once; what they had written is in the hands of their systems, which live."""
    for node in scene.cluster.nodes.values():
        node.kill()
    scene.cluster.launch()
    scene.cluster.wait_until_serving()


def restart(scene: Scene, chance: random.Random) -> None:
    node = scene.any_broker(chance)
    assert node.stop() == 0, f"node {node.node_id} did not stop cleanly:\n{scene.cluster.last_words()}"
    scene.load.wait_for_progress()
    scene.cluster.start(node.node_id)


def rolling_restart(scene: Scene, _chance: random.Random) -> None:
    for node in list(scene.cluster.nodes.values()):
        assert node.stop() == 0, f"node {node.node_id} did not stop cleanly:\n{scene.cluster.last_words()}"
        scene.cluster.start(node.node_id)
        scene.cluster.wait_until_whole()


def _pause(scene: Scene, node: ClusterNode, chance: random.Random) -> None:
    """From a hiccup to longer than a session, so that it wakes up as somebody who was given up."""
    log.info("SIGSTOP of node %d", node.node_id)
    node.pause()
    if chance.random() < 0.5:
        let_pass(chance.uniform(0.1, 2.0))
    else:
        scene.load.wait_for_progress(despite_silence=True)
    node.resume()


def pause_leader(scene: Scene, chance: random.Random) -> None:
    _pause(scene, scene.leader(chance), chance)


def pause_controller(scene: Scene, chance: random.Random) -> None:
    _pause(scene, scene.controller(), chance)


# -- links


def isolate(scene: Scene, chance: random.Random) -> None:
    """A node is cut off from everybody, as if its cable were pulled."""
    node = chance.choice([scene.leader(chance), scene.controller(), scene.any_broker(chance)])
    log.info("node %d is isolated", node.node_id)
    separate(scene.network, [node.node_id], [*scene.others(node), CLIENTS])
    scene.load.wait_for_progress(despite_silence=True)
    scene.network.heal()


def leave_in_minority(scene: Scene, chance: random.Random) -> None:
    """A leader is cut off from all nodes while clients reach it still: it may promise them nothing.

    Some clients believe whoever they asked first, so nobody is asked to go on before the end.
    """
    partition = chance.choice(list(scene.load.partitions))
    node = scene.cluster.nodes[scene.cluster.leader_of(scene.topic, partition)]
    log.info("node %d is in the minority", node.node_id)
    separate(scene.network, [node.node_id], scene.others(node))
    _wait_for_another_leader(scene, node, partition)
    let_pass(chance.uniform(0, 3.0))
    scene.network.heal()


def _wait_for_another_leader(scene: Scene, deposed: ClusterNode, partition: int) -> None:
    def elected() -> bool:
        return any(
            each.index == partition and each.leader not in (-1, deposed.node_id)
            for node in scene.cluster.brokers
            if node is not deposed
            for each in view(node.address, [scene.topic]).partitions
        )

    wait_for(f"another leader than node {deposed.node_id}", elected, timeout_s=30)


def deafen(scene: Scene, chance: random.Random) -> None:
    """What others send to a node is lost, what it sends arrives."""
    node = chance.choice([scene.leader(chance), scene.controller()])
    log.info("node %d is deaf", node.node_id)
    for other in (*scene.others(node), CLIENTS):
        scene.network.cut(other, [node.node_id])
    scene.load.wait_for_progress(despite_silence=True)
    scene.network.heal()


def mute(scene: Scene, chance: random.Random) -> None:
    """What a node sends to others is lost, what they send arrives."""
    node = chance.choice([scene.leader(chance), scene.controller()])
    log.info("node %d is mute", node.node_id)
    scene.network.cut(node.node_id, [*scene.others(node), CLIENTS])
    scene.load.wait_for_progress(despite_silence=True)
    scene.network.heal()


def cut_one_link(scene: Scene, chance: random.Random) -> None:
    """Two nodes do not reach each other; both reach all others, and clients reach both.

    If one of them is the controller, the other is given up and does not know; some clients believe it for as long.
    """
    one, other = chance.sample(list(scene.cluster.nodes), 2)
    log.info("nodes %d and %d are cut", one, other)
    separate(scene.network, [one], [other])
    let_pass(chance.uniform(0.5, 4.5))
    scene.network.heal()


def slow_link(scene: Scene, chance: random.Random) -> None:
    node = scene.any_broker(chance)
    log.info("node %d is slow", node.node_id)
    scene.network.slow(node.node_id, chance.choice([256, 1_000, 4_000]))
    scene.load.wait_for_progress(despite_silence=True)
    scene.network.heal()


# -- disks


def _partition_dirs(node: ClusterNode, topic: str) -> list[Path]:
    return sorted(node.data_dir.glob(f"{topic}-*"))


def lose_partitions(scene: Scene, chance: random.Random) -> None:
    """A follower crashes and comes back with empty partitions; it is filled again from the leaders."""
    node = scene.any_broker(chance)
    node.kill()
    scene.load.wait_for_progress()
    for directory in _partition_dirs(node, scene.topic):
        shutil.rmtree(directory)
    scene.cluster.start(node.node_id)


def corrupt_tail(scene: Scene, chance: random.Random) -> None:
    """A byte of the last batch is not what was written; recovery finds it and the leader has it right.

    It is one of those that the batch's checksum covers: nobody can find the others.
    """
    node = scene.any_broker(chance)
    node.kill()
    scene.load.wait_for_progress()
    directory = chance.choice(_partition_dirs(node, scene.topic))
    last = max(directory.glob("*.log"))
    *_, (_base, _end, batch) = [(0, 0, b""), *stored(directory)]
    size = last.stat().st_size
    if size and batch:
        with last.open("r+b") as file:
            at = size - 1 - chance.randrange(len(batch) - CHECKED_FROM)
            file.seek(at)
            (byte,) = file.read(1)
            file.seek(at)
            file.write(bytes([byte ^ 0x55]))
    scene.cluster.start(node.node_id)


def tear_tail(scene: Scene, chance: random.Random) -> None:
    """The last bytes of all partitions of a node that crashed never reached its disk."""
    node = scene.any_broker(chance)
    node.kill()
    scene.load.wait_for_progress()
    for directory in _partition_dirs(node, scene.topic):
        segment = max(directory.glob("*.log"))
        os.truncate(segment, max(0, segment.stat().st_size - chance.randrange(500)))
    scene.cluster.start(node.node_id)


def fill_disk(scene: Scene, _chance: random.Random) -> None:
    """The disk of one node is full; the others go on. Then there is room again, and it is started anew."""
    node = scene.cluster.nodes[scene.small_disk]
    filler = node.data_dir / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 16)):
                pass
        except OSError as full:
            log.info("the disk of node %d is full: %s", node.node_id, full)
    scene.load.wait_for_progress()
    filler.unlink()
    node.stop()
    scene.cluster.start(node.node_id)


# -- placement


def move_partitions(scene: Scene, chance: random.Random) -> None:
    """Every partition gets other replicas, or a smaller set and then its old one, while it is written and read."""
    brokers = [node.node_id for node in scene.cluster.brokers]
    for size in (2, 3):
        targets = {
            TopicPartition(scene.topic, partition): chance.sample(brokers, size) for partition in scene.load.partitions
        }
        _move(scene, targets)
        scene.load.wait_for_progress()


def _move(scene: Scene, targets: dict[TopicPartition, list[int]]) -> None:
    with Admin(bootstrap_servers=scene.cluster.bootstrap) as admin:
        admin.alter_partition_reassignments(targets).checked()

        def arrived() -> bool:
            found = {each.index: each.replicas for each in scene.cluster.partitions(scene.topic)}
            return all(set(found.get(item.partition, ())) == set(nodes) for item, nodes in targets.items())

        wait_for(f"moves to {targets}", arrived, timeout_s=MOVE_TIMEOUT_S, pause_s=0.1)


def elect_preferred(scene: Scene, _chance: random.Random) -> None:
    with Admin(bootstrap_servers=scene.cluster.bootstrap) as admin:
        admin.elect_leaders([TopicPartition(scene.topic, partition) for partition in scene.load.partitions])


PROCESSES: tuple[Fault, ...] = (
    kill_leader, kill_controller, kill_any, kill_and_start_at_once, kill_all, restart, rolling_restart, pause_leader,
    pause_controller,
)  # fmt: skip
LINKS: tuple[Fault, ...] = (isolate, leave_in_minority, deafen, mute, cut_one_link, slow_link)
DISKS: tuple[Fault, ...] = (lose_partitions, corrupt_tail, tear_tail)
PLACEMENT: tuple[Fault, ...] = (move_partitions, elect_preferred)


def menu(scene: Scene) -> list[Fault]:
    """What can be done to this cluster on this machine."""
    found = [*PROCESSES, *DISKS, *PLACEMENT]
    if scene.network.can_cut:
        found += LINKS
    if scene.small_disk:
        found.append(fill_disk)
    return found


def mount_small_disk(directory: Path) -> None:
    """A disk of its own for a node, in memory, that can be filled without filling ours."""
    directory.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(directory)]
    subprocess.run(command, check=True, capture_output=True, timeout=within(10))


def unmount(directory: Path) -> None:
    subprocess.run(["umount", "-l", str(directory)], check=False, capture_output=True, timeout=within(10))
