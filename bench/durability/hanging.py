"""A disk that hangs for seconds on one node of three, at random, in turn the active controller's and another's.

Each node has its data on an ext4 of its own behind a loop device. A hang is the freeze of that file system by the
kernel: whoever writes, syncs or makes a file waits until it is thawed; reads are answered.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench import brokers, machine, places
from bench.brokers import APACHE, PENSTOCK_NODE
from bench.cluster import JVM
from bench.durability.steady import QUIET, Place, Reader, Verdict, Writers, judge
from bench.durability.story import MetadataLog, Story
from penstock.bench import report
from penstock.bench.series import Results
from tests.compat.cluster import ApacheCluster, Cluster
from tests.compat.processes import TimedOut, wait_for
from tests.faults.cluster.disks import Disk, disks_allowed
from tests.faults.cluster.watched import WatchedCluster
from tests.faults.node import read_all

# Every node leads one partition of each; of the second topic it follows one and has no part in the third.
TOPICS = {
    "three-replicas": [[1, 2, 3], [2, 3, 1], [3, 1, 2]],
    "two-replicas": [[1, 2], [2, 3], [3, 1]],
}
PLACES = [Place(topic, partition) for topic, replicas in TOPICS.items() for partition in range(len(replicas))]
SETTLE_S = 120.0
LOOPS = {
    "the loop that votes and heartbeats was held, at most": "penstock_control_loop_held_max_ms",
    "the same with the time in which it got no processor": "penstock_control_loop_lag_max_ms",
    "the loop that serves clients was held, at most": "penstock_loop_held_max_ms",
}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How long and how often."""

    hangs: int = 10
    hang_s: float = 5.0
    rest_s_min: float = 3.0
    rest_s_max: float = 10.0
    warmup_s: float = 20.0
    interval_s: float = 0.02
    seed: int = 15

    def quick(self) -> Settings:
        return replace(self, hangs=2, warmup_s=5.0, rest_s_max=4.0)


@dataclass(frozen=True)
class Hang:
    """One hang: whose disk, from when until all was well again, and what it did."""

    node_id: int
    of_controller: bool
    story: Story
    led_wait_s: float
    followed_wait_s: float
    elsewhere_wait_s: float

    @property
    def group(self) -> str:
        return f"the disk of {'the active controller' if self.of_controller else 'another node'} hangs"

    def __str__(self) -> str:
        told = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in asdict(self.story).items())
        return (
            f"node {self.node_id}{' (controller)' if self.of_controller else ''}: longest wait {self.led_wait_s:.2f} s "
            f"where it leads, {self.followed_wait_s:.2f} s where it follows, {self.elsewhere_wait_s:.2f} s elsewhere; "
            f"{told}"
        )


def make_cluster(name: str, home: Path) -> Cluster:
    cluster: Cluster
    if name == APACHE:
        cluster = ApacheCluster(home, 3)
        cluster.jvm = JVM
    else:
        cluster = WatchedCluster(home, 3)
    # What is asked is asked with Kafka's own timeouts, not with the short ones of tests.
    cluster.given = {}
    return cluster


@contextmanager
def disks_of(cluster: Cluster, home: Path) -> Iterator[dict[int, Disk]]:
    """A file system for each node's data; thawed and gone at the end, whatever happens."""
    with ExitStack() as stack:
        disks = {}
        for node in cluster.nodes.values():
            disk = disks[node.node_id] = Disk(home / f"disk-{node.node_id}", node.data_dir)
            stack.callback(disk.close)
            disk.make()
        yield disks


class Scene:
    """One cluster under load, and its disks."""

    def __init__(self, cluster: Cluster, disks: dict[int, Disk], writers: Writers, settings: Settings) -> None:
        self._cluster, self._disks, self._writers, self._settings = cluster, disks, writers, settings
        self._chance = random.Random(settings.seed)
        self._hung: Counter[int] = Counter()

    def hang(self, number: int) -> Hang:
        """Freezes a disk at a random instant, and returns when all is well again."""
        chance, settings, cluster = self._chance, self._settings, self._cluster
        time.sleep(chance.uniform(settings.rest_s_min, settings.rest_s_max))
        controller = cluster.controller()
        others = [node_id for node_id in cluster.nodes if node_id != controller]
        # Of two the one whose disk hung less often, so that each has its turn.
        other = min(others, key=lambda node_id: (self._hung[node_id], chance.random()))
        victim = controller if number % 2 == 0 else other
        self._hung[victim] += 1
        log_end = self._log(controller).end()
        began_s = time.monotonic()
        self._disks[victim].hang()
        try:
            time.sleep(settings.hang_s)
        finally:
            self._disks[victim].thaw()
        thawed_s = time.monotonic()
        self._settle(thawed_s)
        led, followed, elsewhere = (
            self._writers.longest_wait_s(chosen, began_s, time.monotonic()) for chosen in _by_part(victim)
        )
        story = self._log(cluster.controller()).since(log_end)
        return Hang(victim, victim == controller, story, led, followed, elsewhere)

    def _log(self, node_id: int) -> MetadataLog:
        return MetadataLog(self._cluster.nodes[node_id].data_dir)

    def _settle(self, since_s: float) -> None:
        """Returns when every replica is in sync and what was sent since then is acknowledged, in every partition."""
        self._cluster.wait_until_whole(timeout_s=SETTLE_S)

        def all_go_on() -> bool:
            going_on = {each.place for each in list(self._writers.waits) if each.sent_s > since_s}
            return going_on == set(PLACES)

        wait_for("acknowledgements in every partition", all_go_on, timeout_s=SETTLE_S)


def _by_part(node_id: int) -> list[set[Place]]:
    """The places that a node leads, those that it follows, and those that it has no replica of."""
    led, followed, elsewhere = set(), set(), set()
    for place in PLACES:
        leader, *followers = TOPICS[place.topic][place.partition]
        (led if leader == node_id else followed if node_id in followers else elsewhere).add(place)
    return [led, followed, elsewhere]


class Suite:
    """Hangs disks of one cluster after the other into `results`."""

    def __init__(self, names: Sequence[str], settings: Settings, say: Say) -> None:
        self.settings = settings
        self.results = Results(ours=PENSTOCK_NODE, rival=APACHE if APACHE in names else None)
        self.loads: dict[str, list[float]] = {}
        """How many processes wanted the cores, averaged over a minute, by broker: what else ran is not the same."""
        self.remarks: list[str] = []
        self._names, self._say = list(names), say

    def run(self) -> None:
        for name in self._names:
            with ExitStack() as stack:
                home = stack.enter_context(brokers.scratch())
                cluster = make_cluster(name, home / name)
                disks = stack.enter_context(disks_of(cluster, home))
                stack.enter_context(cluster)
                self._measure(name, cluster, disks)

    def _measure(self, name: str, cluster: Cluster, disks: dict[int, Disk]) -> None:
        self._say(f"three nodes of {cluster.title}, load for {self.settings.warmup_s:.0f} s first")
        _make_topics(cluster)
        with Writers(cluster.bootstrap, PLACES, self.settings.interval_s) as writers:
            with Reader(cluster.bootstrap, [*TOPICS]) as reader:
                time.sleep(self.settings.warmup_s)
                scene = Scene(cluster, disks, writers, self.settings)
                hangs = []
                for number in range(self.settings.hangs):
                    hangs.append(scene.hang(number))
                    self.loads.setdefault(name, []).append(os.getloadavg()[0])
                    self._say(f"hang {number + 1} of {self.settings.hangs}: {hangs[-1]}")
                writers.finish(SETTLE_S)
                # What it has not read by then counts as lost.
                with suppress(TimedOut):
                    reader.wait_for(writers.acked, timeout_s=SETTLE_S)
            stored = [
                value
                for topic, replicas in TOPICS.items()
                for value in read_all(cluster.bootstrap, topic, range(len(replicas))).values()
            ]
            verdict = judge(writers.acked, stored, reader.read)
            self._add(name, hangs, verdict, failed=writers.sent - len(writers.acked), rebalances=reader.assignments - 1)
        if isinstance(cluster, WatchedCluster):
            self._add_loops(name, cluster)

    def _add(self, name: str, hangs: Sequence[Hang], verdict: Verdict, *, failed: int, rebalances: int) -> None:
        def add(group: str, figure: str, unit: str, value: float) -> None:
            self.results.add(group, figure, unit, name, value, higher_is_better=False)

        for group in dict.fromkeys(hang.group for hang in hangs):
            chosen = [hang for hang in hangs if hang.group == group]
            title = f"{group}, {len(chosen)} times for {self.settings.hang_s:.0f} s"
            for field in ("controllers_elected", "epochs", "brokers_fenced", "isr_changes", "leader_changes"):
                add(title, COUNTED[field], "", sum(getattr(hang.story, field) for hang in chosen))
            for hang in chosen:
                add(title, "longest wait of a produce where it leads", "s", hang.led_wait_s)
                add(title, "longest wait of a produce where it follows", "s", hang.followed_wait_s)
                add(title, "longest wait of a produce where it has no replica", "s", hang.elsewhere_wait_s)
        group = "what clients found in the end"
        self.remarks.append(f"{brokers.TITLES[name]} acknowledged {verdict.acknowledged:,} records.")
        add(group, "acknowledged records lost", "", verdict.lost)
        add(group, "written twice", "", verdict.doubled)
        add(group, "given up by a producer", "", failed)
        add(group, "read twice by the group", "", verdict.read_twice)
        add(group, "rebalances of the group", "", rebalances)

    def _add_loops(self, name: str, cluster: WatchedCluster) -> None:
        """A sample for each node, of its whole life."""
        for node in cluster.nodes.values():
            numbers = cluster.numbers(node)
            for figure, metric in LOOPS.items():
                value = numbers[metric]
                self.results.add("Penstock's loops", figure, "ms", name, value, higher_is_better=False)


COUNTED = {
    "controllers_elected": "controllers elected",
    "epochs": "epochs of the quorum",
    "brokers_fenced": "brokers fenced (sessions that expired)",
    "isr_changes": "changes of an ISR",
    "leader_changes": "changes of a partition's leader",
}


def _range(loads: Sequence[float]) -> str:
    return f"{min(loads):.1f} to {max(loads):.1f} processes, each over a minute"


def _make_topics(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    made = admin.create_topics([NewTopic(name, len(where), replica_assignment=where) for name, where in TOPICS.items()])
    for each in made.values():
        each.result(60)
    cluster.wait_until_whole()


INTRODUCTION = (
    "One node of three has a disk that stands still for five seconds, again and again: what the cluster makes of it.",
    "Figures are of one run for each broker. Counts are sums; waits are medians with the best and the worst hang, and",
    "what matters of them is the worst.",
    "",
    "- Three nodes each, broker and controller in one, **with Kafka's default timeouts on both sides** (sessions of 9",
    "  s, fetch timeout of the quorum 2 s, election timeout 1 s, replicas out of sync after 30 s),",
    "  `min.insync.replicas=2`. Kafka has the JVM options of its start script with 512 MB of heap a node. One cluster",
    "  after the other.",
    "- Each node's data are on an ext4 of its own behind a loop device. A hang is the kernel's own freeze of that",
    "  file system (`FIFREEZE`): every write, sync and new file waits until it is thawed. Instants and nodes come",
    "  from a seed; in turn it is the node that is the active controller then, and another.",
    "- **What is fsynced:** nothing before an acknowledgement, on either side; the metadata log is, by both.",
    "- The load: six partitions, a producer of its own for each (confluent-kafka, idempotent, acks=all, its",
    "  defaults), a record of 100 bytes every 20 ms whether or not the last was answered, and a group of one that",
    "  reads it all. A wait runs from the call of `produce` to the acknowledgement.",
    "- A topic of three replicas waits for the disk wherever its leader is: the hanging node is in its ISR for 30 s.",
    "  So there is a second topic of two, of which every node leads one partition, follows one and has no part in the",
    "  third.",
    "- Elections, fenced brokers and ISRs are counted in the metadata log, which both write in the same format. A",
    "  loop's hold is the longest delay of its 50 ms timer over the whole life of a node, as `/metrics` tells it, a",
    "  sample a node. Time in which the machine had no processor for the loop's thread is left out of it, and in the",
    "  row below it.",
    "- On a machine that is as busy as this one a single run says little about the longest hold: [decision",
    "  7](../decisions/0007-two-loops.md) has every run that was made, also the one that was worse than 250 ms. Waits",
    "  of the two brokers are only as comparable as the load beside them.",
)


def measure(names: Sequence[str], remarks: Sequence[str], given: argparse.Namespace, say: Say) -> list[Path]:
    if not disks_allowed():
        say("a disk that hangs is an ext4 of our own, and mounting it takes root: not measured")
        return []
    settings = Settings().quick() if given.quick else Settings()
    chosen = {name: value for name in ("hangs", "seed") if (value := getattr(given, name)) is not None}
    settings = replace(settings, **chosen)
    suite = Suite(names, settings, say)
    suite.run()
    print(report.terminal(suite.results, brokers.TITLES))
    page = report.Page(
        suite="durability-hanging",
        title="A disk that hangs",
        command='make bench SUITE=durability BENCH_ARGS="--parts hanging"',
        introduction=INTRODUCTION,
        machine=machine.describe(list(names))
        | {f"load beside and with {brokers.TITLES[name]}": _range(loads) for name, loads in suite.loads.items()},
        parameters={name.replace("_", " "): value for name, value in asdict(settings).items()},
        remarks=[*remarks, *suite.remarks],
        titles=brokers.TITLES,
    )
    return places.write(page, suite.results, publish=not given.no_page and not given.quick)
