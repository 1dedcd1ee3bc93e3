"""What can go wrong, each fault with its own healing: a generator that begins, waits where it yields, and then heals.

Several last at once, so none looks at more than its own node and links, and none waits for others: whether the cluster
becomes whole again is asked when all have ended. Every process that ends says how: one that was killed with its signal,
one that failed with 1, one that was told to stop with 0.
"""

from __future__ import annotations

import errno
import logging
import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.blocking import Admin
from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition
from tests.compat.cluster import ClusterNode
from tests.compat.processes import Child, TimedOut, wait_for
from tests.faults.cluster.disks import Disk
from tests.faults.cluster.hosts import CLIENTS, Network, between
from tests.faults.cluster.links import CUT, Manner, Pair
from tests.faults.cluster.load import Load
from tests.faults.cluster.replicas import stored
from tests.faults.cluster.schedule import Kind, Takes
from tests.faults.cluster.shim import CHANGES, Calls, Shim
from tests.faults.cluster.watched import WatchedCluster
from tests.patience import within

log = logging.getLogger(__name__)

CHECKED_FROM = 21
"""Where in a batch begins what its checksum covers."""
STOP_S = 120.0
"""The bound of a stop that is told to users."""
FAIL_S = 15.0
LOOK_S = 1.0
_MASKS = ("SigBlk", "SigCgt")


@dataclass
class Scene:
    """The cluster under load and what can be done to it. Nodes without a disk of their own cannot lose power."""

    cluster: WatchedCluster
    network: Network
    load: Load
    shims: dict[int, Shim]
    disks: dict[int, Disk]
    taken: dict[Takes, set[int]] = field(default_factory=lambda: {each: set() for each in Takes})
    """Nodes that a fault has for itself, by what of them."""

    def settle(self) -> None:
        """Waits for what faults began and nobody could wait for before all of them had ended."""

    @property
    def topic(self) -> str:
        return self.load.topic

    @property
    def node_ids(self) -> list[int]:
        return [*self.cluster.nodes]

    def others(self, node: ClusterNode) -> list[int]:
        return [node_id for node_id in self.cluster.nodes if node_id != node.node_id]

    def free(self, takes: Takes) -> list[ClusterNode]:
        return [node for node in self.cluster.nodes.values() if node.node_id not in self.taken[takes]]

    def answering(self) -> Iterator[ClusterNode]:
        """Nodes that might say something; some of them are cut off, and do not."""
        return (node for node in self.free(Takes.PROCESS) if node.running)

    def leader(self, chance: random.Random) -> int:
        """Who leads a partition, as anybody says; 0 when nobody does."""
        partition = chance.choice(list(self.load.partitions))
        for node in self.answering():
            if not node.is_broker:
                continue
            try:
                found = self.cluster.look(node, [self.topic], timeout_s=LOOK_S).partitions
            except OSError:
                continue
            return next((max(each.leader, 0) for each in found if each.index == partition), 0)
        return 0

    def controller(self) -> int:
        """Who leads the quorum, as anybody says; 0 when nobody does."""
        for node in self.answering():
            try:
                leader = self.cluster.told(node, timeout_s=LOOK_S).leader
            except OSError:
                continue
            if leader > 0:
                return leader
        return 0


Body = Callable[[Scene, ClusterNode, random.Random], Iterator[None]]


@dataclass(frozen=True)
class Fault:
    kind: Kind
    body: Body
    whom: str = "any"
    """Whom it happens to, if that one is free: `leader`, `controller`, `broker`, or any node."""

    def victim(self, scene: Scene, chance: random.Random) -> ClusterNode:
        takes = Takes.PROCESS if self.kind.takes is Takes.EVERY_PROCESS else self.kind.takes
        free = scene.free(takes) or [*scene.cluster.nodes.values()]
        if self.whom == "broker":
            free = [node for node in free if node.is_broker] or free
        wanted = scene.leader(chance) if self.whom == "leader" else 0
        wanted = scene.controller() if self.whom == "controller" else wanted
        return next((node for node in free if node.node_id == wanted), chance.choice(free))


MENU: dict[str, Fault] = {}


def fault(
    *,
    takes: Takes = Takes.NOTHING,
    loses: bool = False,
    crashes: bool = False,
    lasts_s: tuple[float, float] = (0.5, 5.0),
    whom: tuple[str, ...] = ("any",),
) -> Callable[[Body], Body]:
    """Puts a fault on the menu, once for each kind of victim."""

    def put(body: Body) -> Body:
        for each in whom:
            name = body.__name__ if whom == ("any",) or len(whom) == 1 else f"{body.__name__}_{each}"
            MENU[name] = Fault(Kind(name, takes, loses, crashes, lasts_s), body, each)
        return body

    return put


# -- processes


def end_by_kill(node: ClusterNode, codes: tuple[int, ...] = (-signal.SIGKILL,)) -> None:
    """kill -9, and nothing else, was what ended it."""
    child = node.child
    node.kill()
    if child is not None:
        code = child.wait(1)
        assert code in codes, f"node {node.node_id} ended with {code}, not one of {codes}\n{child.tail()}"


def _listens(child: Child, number: int) -> bool:
    """Whether a process has something to do with a signal: a handler, or a thread that waits for it."""
    masks = [line for line in Path(f"/proc/{child.pid}/status").read_text().splitlines() if line[:6] in _MASKS]
    return any(int(line.split()[1], 16) >> (number - 1) & 1 for line in masks)


@fault(takes=Takes.PROCESS, crashes=True, whom=("leader", "controller", "any"))
def kill(scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    end_by_kill(node)
    yield
    scene.cluster.launch(node.node_id)


@fault(takes=Takes.PROCESS, crashes=True, lasts_s=(0.0, 0.05))
def kill_and_start_at_once(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """It is back before anybody has missed it."""
    yield from kill(scene, node, chance)


@fault(takes=Takes.EVERY_PROCESS, crashes=True, lasts_s=(0.1, 2.0))
def kill_all(scene: Scene, _node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """All processes die at once; what they had written is in the hands of their systems, which live."""
    for node in scene.cluster.nodes.values():
        end_by_kill(node)
    yield
    order = chance.sample(scene.node_ids, len(scene.node_ids))
    scene.cluster.launch(*order)


@fault(takes=Takes.PROCESS, whom=("leader", "controller", "any"))
def stop(scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """SIGTERM: it ends with 0 within the bound, whoever is there to take over.

    A process that was launched a moment ago and does not listen to signals yet just ends.
    """
    child = node.child
    assert child is not None
    expected = 0 if _listens(child, signal.SIGTERM) else -signal.SIGTERM
    os.kill(child.pid, signal.SIGTERM)
    yield
    code = child.wait(STOP_S)
    assert code in (0, expected), f"node {node.node_id} ended with {code} after SIGTERM\n{child.tail()}"
    node.child = None
    scene.cluster.launch(node.node_id)


@fault(takes=Takes.PROCESS, whom=("leader", "controller", "any"), lasts_s=(0.1, 6.0))
def pause(_scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """From a hiccup to longer than a session, so that it wakes up as somebody who was given up."""
    node.pause()
    yield
    node.resume()


# -- links


def _on_links(scene: Scene, pairs: list[Pair], manner: Manner) -> Iterator[None]:
    number = scene.network.impose(pairs, manner)
    yield
    scene.network.lift(number)


def _from_and_to(scene: Scene, node: ClusterNode) -> list[Pair]:
    return between([node.node_id], [*scene.others(node), CLIENTS])


@fault(whom=("leader", "controller", "any"))
def isolate(scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """A node is cut off from everybody, as if its cable were pulled."""
    yield from _on_links(scene, _from_and_to(scene, node), CUT)


@fault(whom=("leader",))
def leave_in_minority(scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """A leader is cut off from all nodes while clients reach it still: it may promise them nothing."""
    yield from _on_links(scene, between([node.node_id], scene.others(node)), CUT)


@fault(whom=("leader", "controller"))
def deafen(scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """What others send to a node is lost, what it sends arrives."""
    yield from _on_links(scene, [(other, node.node_id) for other in (*scene.others(node), CLIENTS)], CUT)


@fault(whom=("leader", "controller"))
def mute(scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """What a node sends to others is lost, what they send arrives."""
    yield from _on_links(scene, [(node.node_id, other) for other in (*scene.others(node), CLIENTS)], CUT)


@fault()
def cut_one_link(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """Two nodes do not reach each other; both reach all others, and clients reach both."""
    yield from _on_links(scene, between([node.node_id], [chance.choice(scene.others(node))]), CUT)


@fault()
def cut_a_ring(scene: Scene, _node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """Every node is unheard by the next one and hears it: nobody is apart, and no link works both ways."""
    ring = chance.sample(scene.node_ids, len(scene.node_ids))
    yield from _on_links(scene, [*zip(ring, ring[1:] + ring[:1], strict=True)], CUT)


@fault()
def split(scene: Scene, _node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """Two halves; clients reach both."""
    order = chance.sample(scene.node_ids, len(scene.node_ids))
    half = len(order) // 2
    yield from _on_links(scene, between(order[:half], order[half:]), CUT)


@fault()
def lose_packets(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    yield from _on_links(scene, _from_and_to(scene, node), Manner(loss=chance.choice([0.02, 0.1, 0.3])))


@fault()
def delay_packets(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    late = chance.choice([5.0, 50.0, 300.0])
    yield from _on_links(scene, _from_and_to(scene, node), Manner(delay_ms=late, jitter_ms=late))


@fault()
def reorder_packets(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    share = chance.choice([0.05, 0.25])
    yield from _on_links(scene, _from_and_to(scene, node), Manner(reorder=share, reorder_ms=50.0))


@fault()
def narrow_link(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    pairs = [(node.node_id, other) for other in (*scene.others(node), CLIENTS)]
    yield from _on_links(scene, pairs, Manner(kilobits_per_s=chance.choice([256, 1_000, 4_000])))


LINKS = frozenset(name for name, each in MENU.items() if each.kind.takes is Takes.NOTHING)


# -- clocks


@fault(takes=Takes.CLOCK, whom=("leader", "controller"))
def step_clock(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """The wall clock jumps, and jumps back. Not by a day: then the node would rightly forget its producers."""
    shim = scene.shims[node.node_id]
    shim.step_clock(chance.choice([-1, 1]) * chance.choice([2.0, 600.0, 12 * 3_600.0]))
    yield
    shim.step_clock(0.0)


# -- disks


def _partition_dirs(node: ClusterNode, topic: str) -> list[Path]:
    return sorted(node.data_dir.glob(f"{topic}-*"))


@fault(takes=Takes.PROCESS, loses=True, whom=("broker",))
def lose_partitions(scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """A node crashes and comes back with empty partitions; it is filled again from the leaders."""
    end_by_kill(node)
    for directory in _partition_dirs(node, scene.topic):
        shutil.rmtree(directory)
    yield
    scene.cluster.launch(node.node_id)


@fault(takes=Takes.PROCESS, loses=True, whom=("broker",))
def corrupt_tail(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """A byte of the last batch is not what was written; recovery finds it and the leader has it right.

    It is one of those that the batch's checksum covers: nobody can find the others.
    """
    end_by_kill(node)
    for directory in _partition_dirs(node, scene.topic)[:1]:
        last = max(directory.glob("*.log"))
        *_, (_base, _end_offset, batch) = [(0, 0, b""), *stored(directory, growing=True)]
        size = last.stat().st_size
        if size and len(batch) <= size and batch:
            with last.open("r+b") as file:
                at = size - 1 - chance.randrange(len(batch) - CHECKED_FROM)
                file.seek(at)
                (byte,) = file.read(1)
                file.seek(at)
                file.write(bytes([byte ^ 0x55]))
    yield
    scene.cluster.launch(node.node_id)


@fault(takes=Takes.PROCESS, loses=True, whom=("broker",))
def tear_tail(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """The last bytes of all partitions of a node that crashed never reached its disk."""
    end_by_kill(node)
    for directory in _partition_dirs(node, scene.topic):
        segment = max(directory.glob("*.log"))
        os.truncate(segment, max(0, segment.stat().st_size - chance.randrange(500)))
    yield
    scene.cluster.launch(node.node_id)


@fault(takes=Takes.PROCESS, loses=True, whom=("leader", "controller"))
def cut_power(scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """Its disk forgets what was not synced, in the middle of whatever it did."""
    disk = scene.disks[node.node_id]
    disk.cut_power()
    # It may have noticed in the instant between.
    end_by_kill(node, (-signal.SIGKILL, 1))
    yield
    disk.repair()
    scene.cluster.launch(node.node_id)


def _failed(node: ClusterNode, child: Child) -> None:
    """A node whose disk fails ends with 1, if it touched it; one that did not is told to stop."""
    try:
        wait_for("a node without a disk to end", lambda: not child.running(), timeout_s=FAIL_S)
        expected: tuple[int, ...] = (1,)
    except TimedOut:
        os.kill(child.pid, signal.SIGTERM)
        expected = (0, 1)
    code = child.wait(STOP_S)
    assert code in expected, f"node {node.node_id} ended with {code} when its disk failed\n{child.tail()}"
    node.child = None


@fault(takes=Takes.PROCESS, crashes=True, whom=("leader", "controller"))
def fail_disk(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """Writes, syncs or both fail, for good or for want of room: the only directory is lost, and the node ends."""
    calls = chance.choice([CHANGES, Calls.WRITES, Calls.SYNCS])
    child = node.child
    assert child is not None
    scene.shims[node.node_id].fail(node.data_dir, calls, chance.choice([errno.EIO, errno.ENOSPC]))
    yield
    _failed(node, child)
    scene.shims[node.node_id].mend()
    scene.cluster.launch(node.node_id)


@fault(takes=Takes.PROCESS, crashes=True, whom=("leader",))
def fill_disk(scene: Scene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """The disk of one node is really full; the others go on. Then there is room again, and it is started anew."""
    child, disk = node.child, scene.disks[node.node_id]
    assert child is not None
    disk.fill()
    yield
    _failed(node, child)
    disk.make_room()
    scene.cluster.launch(node.node_id)


@fault(takes=Takes.PROCESS, whom=("leader", "controller"), lasts_s=(0.1, 5.0))
def hang_disk(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """Writes and syncs wait, and then go on as if nothing had been."""
    shim = scene.shims[node.node_id]
    shim.hang(node.data_dir, chance.choice([CHANGES, Calls.SYNCS, Calls.WRITES]))
    yield
    shim.mend()
    assert node.running, f"node {node.node_id} ended because its disk was slow\n{node.child and node.child.tail()}"


DISKS = frozenset({"cut_power_leader", "cut_power_controller", "fill_disk"})


# -- placement


def _beside(work: Callable[[], None]) -> Iterator[None]:
    """What asks a controller that may not be there is done beside the rest; a wish that nobody hears is none."""

    def go() -> None:
        try:
            work()
        except (ClientError, TimeoutError) as unheard:
            log.info("nobody heard: %s", unheard)

    asking = threading.Thread(target=go, name="placement", daemon=True)
    asking.start()
    yield
    asking.join()


@fault()
def move_partitions(scene: Scene, _node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """Every partition gets other replicas, or a smaller set and then its old one, while it is written and read."""
    brokers = [node.node_id for node in scene.cluster.brokers]
    sizes = [min(3, len(brokers)), 2] if chance.random() < 0.5 else [2, 3]

    def work() -> None:
        for size in sizes if sizes[-1] == 3 else sizes[:1]:
            targets = {
                TopicPartition(scene.topic, partition): chance.sample(brokers, size)
                for partition in scene.load.partitions
            }
            with Admin(bootstrap_servers=scene.cluster.bootstrap, request_timeout_ms=within(5_000)) as admin:
                admin.alter_partition_reassignments(targets)

    yield from _beside(work)


@fault(lasts_s=(0.0, 0.1))
def elect_preferred(scene: Scene, _node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    def work() -> None:
        with Admin(bootstrap_servers=scene.cluster.bootstrap, request_timeout_ms=within(5_000)) as admin:
            admin.elect_leaders([TopicPartition(scene.topic, partition) for partition in scene.load.partitions])

    yield from _beside(work)


def menu(scene: Scene) -> list[Fault]:
    """What can be done to this cluster on this machine."""
    missing: frozenset[str] = frozenset()
    if not scene.network.can_cut:
        missing |= LINKS
    if not scene.disks:
        missing |= DISKS
    return [each for name, each in MENU.items() if name not in missing]
