"""The Java consumer in one group with all the others: every record reaches one member, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.clients import test_groups
from tests.clients.members import HEARTBEAT_MS, MEMBERS, POLL_MS, RANGE_MEMBERS, SESSION_MS, Member
from tests.clients.own_members import OWN_MEMBERS
from tests.compat.apache.tools import java_command
from tests.compat.conftest import NodeFactory
from tests.compat.processes import Child
from tests.compat.wire import create_topic

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

MEMBERS.update(OWN_MEMBERS)
QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


class JavaMember(Member):
    """The console consumer. It commits by itself whenever it gives partitions up, and when it is told to end."""

    protocol = "classic"
    home: Path

    def properties(self) -> Sequence[str]:
        return (
            f"session.timeout.ms={SESSION_MS}",
            f"heartbeat.interval.ms={HEARTBEAT_MS}",
            "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor",
        )

    def read(self) -> None:
        words = [word for each in self.properties() for word in ("--command-property", each)]
        log = self.home / f"{self.name.replace(' ', '-')}.log"
        child = Child(
            java_command(
                "kafka-console-consumer", "--bootstrap-server", self.bootstrap, "--topic", self.topics[0],
                "--group", self.group, "--from-beginning", "--formatter-property", "print.partition=true",
                "--command-property", f"client.id={self.name}", "--command-property", f"group.protocol={self.protocol}",
                "--command-property", "auto.commit.interval.ms=100", *words,
            ),
            log,
        )  # fmt: skip
        seen = 0
        try:
            while self.staying:
                self._leaving.wait(POLL_MS / 1_000)
                seen += self._take_new(log, seen)
        finally:
            child.stop()
        self._take_new(log, seen)

    def _take_new(self, log: Path, seen: int) -> int:
        lines = [line for line in log.read_text().split("\n")[:-1] if line.startswith("Partition:")][seen:]
        for line in lines:
            partition, value = line.split("\t")
            # It does not tell what it owns; what it is given shows it.
            self.owned |= {(self.topics[0], int(partition.removeprefix("Partition:")))}
            self.took(value.encode())
        return len(lines)


class JavaNewMember(JavaMember):
    protocol = "consumer"

    def properties(self) -> Sequence[str]:
        return ()


JAVA_MEMBERS: dict[str, type[JavaMember]] = {"java": JavaMember, "java consumer protocol": JavaNewMember}


@pytest.mark.parametrize(
    "kinds",
    [
        ("java", *RANGE_MEMBERS, "penstock"),
        ("penstock", "java"),
        ("java consumer protocol", "penstock consumer protocol", "confluent-kafka consumer protocol"),
        ("java", "java consumer protocol"),
    ],
    ids=lambda kinds: ", ".join(kinds),
)
def test_java_shares_a_group(make_node: NodeFactory, tmp_path: Path, kinds: Sequence[str]) -> None:
    node = make_node("node", properties=QUICK_GROUPS)
    for kind in JAVA_MEMBERS.values():
        kind.home = tmp_path
    MEMBERS.update(JAVA_MEMBERS)
    create_topic(node.bootstrap, "t", test_groups.PARTITIONS, {})
    share(node.bootstrap, kinds)


def share(bootstrap: str, kinds: Sequence[str]) -> None:
    """As `come_and_go`, but a Java member's share is known only by what it has read."""
    with test_groups.loaded(bootstrap, "t") as load, test_groups.group_of(bootstrap, "t") as group:
        first = group.join(kinds[0])
        test_groups.until("the first member to be given something", lambda: group.by_member[first.name] > 0)
        for kind in kinds[1:]:
            group.join(kind)
        busy = group.by_member.copy()
        everybody: Callable[[], bool] = lambda: all(  # noqa: E731 (a condition reads best beside its use)
            group.by_member[member.name] > busy[member.name] for member in group.members
        )
        test_groups.until("everybody to be given something", everybody)
        group.leave(first)
        busy = group.by_member.copy()
        test_groups.until("the others to go on", everybody)
        load.stop()
        test_groups.until("the last record", lambda: len(group.given) == len(load.sent))
        assert group.given == Counter(load.sent), "each record once"
