"""Groups under kill -9 and pauses: somebody takes over, and no offset that was confirmed is forgotten."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.compat.processes import wait_for
from tests.faults.counts import SOAKING, rounds
from tests.faults.node import NodeProcess, let_pass
from tests.patience import stretched, within

PARTITIONS = 4
SESSION_MS = 3_000
ROOT = Path(__file__).resolve().parents[2]

# The shortest sessions and heartbeats that a test can wait for.
QUICK_GROUPS = {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.min.session.timeout.ms": "1000",
}
STRETCH_MAX = 4.0
"""What a session may last on a busy machine, as a multiple of an idle one's: tests wait for its end."""


class Member:
    """A consumer process and what it has said so far."""

    def __init__(
        self, home: Path, name: str, library: str, node: NodeProcess, group: str, protocol: str, session_ms: int
    ) -> None:
        self.out = home / f"{name}.out"
        words = (library, node.address, "work", group, protocol, str(session_ms))
        with self.out.open("wb") as out, (home / f"{name}.err").open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.group_member", *words], stdout=out, stderr=err, cwd=ROOT
            )

    def said(self, kind: str) -> list[list[str]]:
        text = self.out.read_text()
        whole = text[: text.rfind("\n") + 1]
        return [line.split()[1:] for line in whole.splitlines() if line.startswith(f"{kind} ")]

    def read(self) -> list[tuple[int, int]]:
        return [(int(words[0]), int(words[1])) for words in self.said("read")]

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
        self._process.wait()


class World:
    """A node, a topic that somebody fills, and members that come and go."""

    def __init__(self, home: Path, library: str, protocol: str) -> None:
        self.home, self.library, self.protocol = home, library, protocol
        settings = stretched(QUICK_GROUPS, STRETCH_MAX)
        self.node = NodeProcess(home / "data", *(f"{name}={value}" for name, value in settings.items()))
        self.session_ms = int(settings["group.consumer.session.timeout.ms"])
        self.members: list[Member] = []
        self.produced = 0

    def join(self) -> Member:
        name = f"member-{len(self.members)}"
        self.members.append(Member(self.home, name, self.library, self.node, "g", self.protocol, self.session_ms))
        return self.members[-1]

    def produce(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.node.address, "log_level": 0})
        for number in range(self.produced, self.produced + count):
            producer.produce("work", b"%d" % number, partition=number % PARTITIONS)
        assert producer.flush(within(60)) == 0
        self.produced += count

    def wait_until_all_are_read(self) -> None:
        wanted = {(number % PARTITIONS, number // PARTITIONS) for number in range(self.produced)}
        wait_for(
            f"{self.produced} records to be read",
            lambda: wanted <= {place for member in self.members for place in member.read()},
            timeout_s=60,
            pause_s=0.1,
        )

    def confirmed(self) -> dict[int, int]:
        """The highest offset of each partition that a member was told to be committed."""
        highest: dict[int, int] = {}
        for member in self.members:
            for partition, offset in member.said("committed"):
                highest[int(partition)] = max(highest.get(int(partition), 0), int(offset))
        return highest

    def committed(self) -> dict[int, int]:
        """What the broker says."""
        consumer = Consumer({"bootstrap.servers": self.node.address, "group.id": "g", "log_level": 0})
        try:
            asked = [TopicPartition("work", partition) for partition in range(PARTITIONS)]
            return {each.partition: each.offset for each in consumer.committed(asked, timeout=within(30))}
        finally:
            consumer.close()

    def check_commits(self) -> None:
        before = self.confirmed()
        found = self.committed()
        assert {partition: found.get(partition, -1) >= offset for partition, offset in before.items()} == dict.fromkeys(
            before, True
        ), f"confirmed {before}, found {found}"

    def close(self) -> None:
        for member in self.members:
            member.kill()
        self.node.kill()


@pytest.fixture(params=["penstock-classic", "penstock-consumer", "confluent-classic", "confluent-consumer"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    library, protocol = request.param.split("-")
    made = World(tmp_path, library, protocol)
    made.node.start()
    made.node.create_topic("work", PARTITIONS)
    yield made
    made.close()


@pytest.mark.timeout(1_800 if SOAKING else 120)
def test_the_group_goes_on_when_members_die(world: World) -> None:
    world.join()
    world.join()
    world.produce(200)
    world.wait_until_all_are_read()
    for _ in rounds(fast=1, full=20):
        victim = world.members[-2]
        world.produce(100)
        victim.kill()
        world.join()
        world.produce(100)
        world.wait_until_all_are_read()
        world.check_commits()


@pytest.mark.timeout(1_800 if SOAKING else 120)
def test_no_commit_is_forgotten_when_the_node_dies(world: World) -> None:
    chance = random.Random(20_260_303)
    world.join()
    world.join()
    world.produce(200)
    world.wait_until_all_are_read()
    for _ in rounds(fast=2, full=50):
        world.produce(200)
        let_pass(chance.uniform(0, 0.5))
        world.node.kill()
        world.node.start()
        world.check_commits()
    world.produce(100)
    world.wait_until_all_are_read()
    world.check_commits()


@pytest.mark.timeout(1_800 if SOAKING else 120)
def test_a_member_that_was_frozen_loses_its_partitions_and_comes_back(world: World) -> None:
    frozen = world.join()
    world.join()
    world.produce(400)
    world.wait_until_all_are_read()
    for _ in rounds(fast=1, full=10):
        frozen.signal(signal.SIGSTOP)
        world.produce(400)
        world.wait_until_all_are_read()  # the other one has everything once the session is over
        frozen.signal(signal.SIGCONT)
        world.produce(400)
        world.wait_until_all_are_read()
        world.check_commits()
    # What two members read twice lies between a commit that the pause prevented and the takeover, no more.
    times = Counter(place for member in world.members for place in member.read())
    assert all(count <= 2 + 10 * SOAKING for count in times.values())
