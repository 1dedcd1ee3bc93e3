"""Kafka Streams on our brokers: what it counts exactly once while its processes and our nodes are killed."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.blocking import Admin, Consumer
from penstock.coordinators.home import home_partition
from penstock.model.ids import TopicPartition
from tests.compat.cluster import ApacheCluster, Cluster, PenstockCluster
from tests.compat.processes import wait_for
from tests.compat.streams.application import AT_LEAST_ONCE, EXACTLY_ONCE, MEMORY, ROCKSDB, Instance, Plan
from tests.compat.streams.lines import Feeder, Told, mistakes
from tests.compat.test_transactions import settled

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

PARTITIONS = 4
STATE_PARTITIONS = "transaction.state.log.num.partitions"
SETTINGS = {
    STATE_PARTITIONS: "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@pytest.fixture(scope="module")
def three(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    kind = ApacheCluster if pytestconfig.getoption("--target") == "apache" else PenstockCluster
    with kind(tmp_path_factory.mktemp("streams"), 3, properties=SETTINGS) as started:
        yield started


class Run:
    """Instances of one application, fed without a pause, and what they have told."""

    def __init__(self, plan: Plan, instances: list[Instance], feeder: Feeder, told: Told) -> None:
        self.plan, self.instances, self.feeder, self.told = plan, instances, feeder, told

    def wait_for_counts(self, more: int = 500) -> None:
        """Returns when so many more words are counted and committed."""
        goal = self.told.words + more
        wait_for(f"{more} more counts", lambda: self._look() >= goal, timeout_s=120)

    def wait_for_all(self) -> None:
        """Ends the feeding; returns when everything is counted, and nothing is open any more."""
        self.feeder.stop()
        assert self.feeder.failure is None, self.feeder.failure
        goal = self.feeder.wanted.total()
        wait_for("all counts", lambda: self._look() >= goal, timeout_s=120)

    def coordinator(self, three: Cluster) -> int:
        """The node that coordinates the transactions of one of the instances."""
        with Admin(bootstrap_servers=self.plan.bootstrap) as admin:
            name = min(each.id for each in admin.list_transactions() if each.id.startswith(self.plan.application))
        return three.leader_of("__transaction_state", home_partition(name, int(SETTINGS[STATE_PARTITIONS])))

    def _look(self) -> int:
        words = self.told.read()
        self.feeder.counted(words)
        assert self.feeder.failure is None, self.feeder.failure
        for each in self.instances:
            if each.child is not None:
                each.assert_lives()
        return words

    def judge(self) -> None:
        """All counts are there, once and in order, in the topic and in what stores are restored from."""
        self.wait_for_all()
        for each in self.instances:
            each.stop()
        bootstrap, plan = self.plan.bootstrap, self.plan
        for topic in (plan.lines, plan.repartition, plan.changelog, plan.counts):
            for partition in range(PARTITIONS):
                settled(bootstrap, topic, partition)
        wait_for("the end of the counts", self.told.at_the_end, timeout_s=30)
        wrong = mistakes(self.told.counts, self.feeder.wanted)
        assert not wrong, f"{len(wrong)} of {len(self.feeder.wanted)} words: {wrong[:10]}"
        assert restored(bootstrap, plan.changelog) == dict(self.feeder.wanted)
        with Admin(bootstrap_servers=bootstrap) as admin:
            states = {each.state for each in admin.list_transactions() if each.id.startswith(plan.application)}
        assert states <= {"Empty", "CompleteCommit", "CompleteAbort"}, states


def restored(bootstrap: str, changelog: str) -> dict[str, int]:
    """What a store would hold that is restored from its changelog."""
    tps = [TopicPartition(changelog, index) for index in range(PARTITIONS)]
    found: dict[str, int] = {}
    reading = {"bootstrap_servers": bootstrap, "offset_reset": "earliest", "isolation_level": "read_committed"}
    with Consumer(**reading) as consumer:
        consumer.assign(tps)
        ends = consumer.end_offsets(*tps)
        while [consumer.position(tp) for tp in tps] != [ends[tp] for tp in tps]:
            for record in consumer.poll(timeout_ms=100):
                assert record.key is not None
                assert record.value is not None
                (found[record.key.decode()],) = struct.unpack(">q", record.value)
    return found


@contextmanager
def counting(
    three: Cluster, topic: str, home: Path, guarantee: str, store: str, instances: int = 3
) -> Iterator[Run]:  # fmt: skip
    lines, counts = f"{topic}-lines", f"{topic}-counts"
    for name in (lines, counts):
        three.new_topic(name, PARTITIONS, 3)
    plan = Plan(three.bootstrap, lines, counts, f"{topic}-application", guarantee, store, home)
    (home / "classes").mkdir()
    started = [Instance(plan, f"instance-{number}") for number in range(1, instances + 1)]
    told = Told(three.bootstrap, counts, PARTITIONS)
    feeder = Feeder(three.bootstrap, lines)
    try:
        for each in started:
            each.start()
        for each in started:
            each.wait_until_running()
        with feeder:
            yield Run(plan, started, feeder, told)
    finally:
        told.close()
        for each in started:
            each.kill()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([1, 2], "again came 3 times; 2 counts, from place 2 on []"),
        ([1, 2, 2, 3], "again came 3 times; 4 counts, from place 2 on [2, 3]"),
        ([1, 3], "again came 3 times; 2 counts, from place 1 on [3]"),
        ([1, 2, 3, 4], "again came 3 times; 4 counts, from place 3 on [4]"),
    ],
)
def test_a_count_too_few_or_too_many_is_noticed(told: list[int], words: str) -> None:
    assert mistakes({"again": told}, Counter(again=3)) == [words]
    assert not mistakes({"again": [1, 2, 3]}, Counter(again=3))


@pytest.mark.parametrize(("guarantee", "store"), [(AT_LEAST_ONCE, MEMORY), (EXACTLY_ONCE, ROCKSDB)])
def test_words_are_counted(three: Cluster, topic: str, tmp_path: Path, guarantee: str, store: str) -> None:
    with counting(three, topic, tmp_path, guarantee, store, instances=1) as run:
        run.wait_for_counts()
        run.judge()


@pytest.mark.parametrize("store", [ROCKSDB, MEMORY])
def test_words_are_counted_once_while_processes_and_brokers_are_killed(
    three: Cluster, topic: str, tmp_path: Path, store: str
) -> None:
    """One of three instances is killed in the middle and comes back with its directory; then so does the broker that
    coordinates an instance's transactions."""
    with counting(three, topic, tmp_path, EXACTLY_ONCE, store) as run:
        run.wait_for_counts()
        victim = run.instances[1]
        victim.kill()
        run.wait_for_counts()
        victim.start()
        victim.wait_until_running()
        run.wait_for_counts()
        broker = run.coordinator(three)
        three.nodes[broker].kill()
        run.wait_for_counts()
        three.start(broker)
        run.wait_for_counts()
        run.judge()
        assert run.feeder.aborted > 0
