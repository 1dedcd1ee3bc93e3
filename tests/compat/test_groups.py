"""Consumer groups through Kafka's tools: every command of kafka-consumer-groups, console consumers, what is on disk."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat.apache.tools import Outcome, Tools, java_command, run_tool
from tests.compat.conftest import NodeFactory
from tests.compat.processes import Child, wait_for
from tests.compat.test_records import create

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

PROTOCOLS = ("classic", "consumer")
COMMIT_OFTEN = ("--command-property", "auto.commit.interval.ms=100")


def put(tools: Tools, topic: str, count: int) -> None:
    """Numbers, each its own key, so that they spread over the partitions."""
    lines = "".join(f"{number}\t{number}\n" for number in range(count))
    tools.run("kafka-console-producer", "--topic", topic, "--reader-property", "parse.key=true", stdin=lines)


def drain(tools: Tools, topic: str, group: str, protocol: str, count: int) -> Outcome:
    """A console consumer that reads `count` records as a member of `group`, commits and leaves."""
    return tools.run(
        "kafka-console-consumer", "--topic", topic, "--group", group, "--from-beginning",
        "--max-messages", str(count), "--timeout-ms", "30000", "--command-property", f"group.protocol={protocol}",
    )  # fmt: skip


def rows(outcome: Outcome, *columns: str) -> list[tuple[str, ...]]:
    """The named columns of the last table that a tool printed."""
    lines = [line.split() for line in outcome.lines()]
    at = max(number for number, line in enumerate(lines) if line and line[0] in ("GROUP", "TOPIC"))
    return sorted(tuple(line[lines[at].index(column)] for column in columns) for line in lines[at + 1 :])


@pytest.fixture
def read(tools: Tools, topic: str) -> Callable[..., str]:
    """A group that has read ten records of a topic with two partitions and is empty now."""

    def make(protocol: str = "classic") -> str:
        group = f"group-of-{topic}"
        create(tools, topic, 2)
        put(tools, topic, 10)
        assert sorted(map(int, drain(tools, topic, group, protocol, 10).lines())) == list(range(10))
        return group

    return make


def groups(tools: Tools, *arguments: str) -> Outcome:
    return tools.run("kafka-consumer-groups", *arguments)


def total(tools: Tools, group: str, column: str) -> int:
    described = groups(tools, "--describe", "--group", group)
    return sum(int(value) for (value,) in rows(described, column))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_is_listed_described_and_deleted(
    tools: Tools, topic: str, read: Callable[..., str], protocol: str
) -> None:
    group = read(protocol)
    assert group in groups(tools, "--list").lines()
    kind = "Classic" if protocol == "classic" else "Consumer"
    listed = [line.split() for line in groups(tools, "--list", "--state", "--type").lines()]
    assert [group, kind, "Empty"] in listed
    assert [group, "Empty"] in [line.split() for line in groups(tools, "--list", "--state", "empty").lines()]
    assert group not in groups(tools, "--list", "--state", "stable").stdout
    assert group in groups(tools, "--list", "--type", protocol).stdout
    assert group in tools.run("kafka-groups", "--list", "--group-type", protocol).stdout

    assert total(tools, group, "LAG") == 0
    put(tools, topic, 3)
    assert total(tools, group, "LAG") == 3
    state = groups(tools, "--describe", "--group", group, "--state", "--verbose")
    assert "Empty" in state.stdout
    assert group in groups(tools, "--describe", "--all-groups").stdout
    assert (
        "has no active members"
        in groups(tools, "--describe", "--group", group, "--members").stderr
        + groups(tools, "--describe", "--group", group, "--members").stdout
    )

    deleted = groups(tools, "--delete", "--group", group)
    assert "successful" in deleted.stdout
    assert group not in groups(tools, "--list").lines()


def test_a_group_that_is_not_there_is_said_so(tools: Tools) -> None:
    outcome = groups(tools, "--describe", "--group", "nobody")
    assert "Group nobody not found" in outcome.stdout + outcome.stderr


RESETS: list[tuple[str, tuple[str, ...], int]] = [
    ("to-earliest", (), 0),
    ("to-latest", (), 10),
    ("to-offset", ("1",), 2),
    ("shift-by", ("-1",), 8),
    ("to-current", (), 10),
    ("by-duration", ("P1D",), 0),
    ("to-datetime", ("2020-01-01T00:00:00.000",), 0),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_offsets_are_reset_in_every_way(
    tools: Tools, topic: str, read: Callable[..., str], protocol: str, tmp_path: Path
) -> None:
    group = read(protocol)
    for option, values, wanted in RESETS:
        scope = ("--reset-offsets", "--group", group, "--topic", topic, f"--{option}", *values)
        before = total(tools, group, "CURRENT-OFFSET")
        planned = groups(tools, *scope, "--dry-run")
        assert sum(int(value) for (value,) in rows(planned, "NEW-OFFSET")) == wanted, option
        assert total(tools, group, "CURRENT-OFFSET") == before
        groups(tools, *scope, "--execute")
        assert total(tools, group, "CURRENT-OFFSET") == wanted, option
        groups(tools, "--reset-offsets", "--group", group, "--topic", topic, "--to-latest", "--execute")
    exported = groups(tools, "--reset-offsets", "--group", group, "--all-topics", "--to-current", "--export")
    plan = tmp_path / "plan.csv"
    lines = [line for line in exported.lines() if line.count(",") >= 2]
    plan.write_text("\n".join(re.sub(r",\d+$", ",1", line) for line in lines))
    groups(tools, "--reset-offsets", "--group", group, "--from-file", str(plan), "--execute")
    assert total(tools, group, "CURRENT-OFFSET") == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_single_offsets_are_deleted(tools: Tools, topic: str, read: Callable[..., str], protocol: str) -> None:
    group = read(protocol)
    deleted = groups(tools, "--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert "Successful" in deleted.stdout
    described = groups(tools, "--describe", "--group", group)
    assert [partition for (partition,) in rows(described, "PARTITION")] == ["1"]


class Running:
    """A console consumer in the background."""

    def __init__(self, home: Path, name: str, bootstrap: str, topic: str, group: str, *properties: str) -> None:
        self.log = home / f"{name}.log"
        words = [word for each in properties for word in ("--command-property", each)]
        self._child = Child(
            java_command(
                "kafka-console-consumer", "--bootstrap-server", bootstrap, "--topic", topic, "--group", group,
                "--from-beginning", *COMMIT_OFTEN, *words,
            ),
            self.log,
        )  # fmt: skip

    def values(self) -> list[int]:
        return [int(line) for line in self.log.read_text().splitlines() if line.isdigit()]

    def stop(self) -> None:
        self._child.stop()

    def kill(self) -> None:
        self._child.kill()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_members_share_a_topic_and_are_described(
    tools: Tools, bootstrap: str, topic: str, tmp_path: Path, protocol: str
) -> None:
    create(tools, topic, 4)
    put(tools, topic, 20)
    group = f"group-of-{topic}"
    property_of = f"group.protocol={protocol}"
    members = [Running(tmp_path, name, bootstrap, topic, group, property_of) for name in ("one", "two")]
    try:
        wait_for(
            "both members to have partitions",
            lambda: (
                sorted(count for (count,) in rows_or_none(tools, "--describe", "--group", group, "--members") or [])
                == ["2", "2"]
            ),
            timeout_s=90,
        )
        verbose = groups(tools, "--describe", "--group", group, "--members", "--verbose")
        assert topic in verbose.stdout
        state = groups(tools, "--describe", "--group", group, "--state")
        assert "Stable" in state.stdout
        seen = wait_for("all records", lambda: _all_of(members, 20), timeout_s=60)
        assert sorted(seen) == list(range(20))
        refused = groups(tools, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
        assert "inactive" in refused.stdout + refused.stderr
        refused = groups(tools, "--delete", "--group", group)
        assert "not empty" in refused.stdout + refused.stderr
    finally:
        for each in members:
            each.stop()


def _all_of(members: list[Running], count: int) -> list[int] | None:
    seen = [value for each in members for value in each.values()]
    return seen if len(seen) >= count else None


def rows_or_none(tools: Tools, *arguments: str) -> list[tuple[str, ...]] | None:
    outcome = groups(tools, *arguments)
    return rows(outcome, "#PARTITIONS") if "#PARTITIONS" in outcome.stdout else None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_formatters_read_what_groups_write(
    tools: Tools, topic: str, read: Callable[..., str], protocol: str
) -> None:
    group = read(protocol)
    for formatter, wanted in (
        ("OffsetsMessageFormatter", f'"group":"{group}","topic":"{topic}","partition":0'),
        ("GroupMetadataMessageFormatter", f'"group":"{group}"' if protocol == "classic" else ""),
    ):
        shown = tools.run(
            "kafka-console-consumer", "--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "4000",
            "--formatter", f"org.apache.kafka.tools.consumer.{formatter}",
        )  # fmt: skip
        assert wanted in shown.stdout


def test_the_offsets_decoder_reads_the_segments(make_node: NodeFactory, tmp_path: Path) -> None:
    node = make_node("decoded", properties={"offsets.topic.num.partitions": "1"})
    own = Tools(node.bootstrap)
    create(own, "t", 2)
    put(own, "t", 10)
    for protocol in PROTOCOLS:
        drain(own, "t", f"group-{protocol}", protocol, 10)
    node.stop()
    (segment,) = (node.data_dir / "__consumer_offsets-0").glob("*.log")
    dumped = run_tool("kafka-dump-log", "--offsets-decoder", "--files", segment).stdout
    kinds = set(re.findall(r'key: \{"type":"(\d+)"', dumped))
    # Commits and classic groups; epoch, member, target epoch, target and current assignment of consumer groups.
    assert kinds == {"1", "2", "3", "5", "6", "7", "8"}
    assert "Failed" not in dumped


def test_the_perf_tool_consumes_in_a_group(tools: Tools, topic: str) -> None:
    create(tools, topic, 2)
    tools.run(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", "20000", "--record-size", "100",
        "--throughput", "-1",
    )  # fmt: skip
    for protocol in PROTOCOLS:
        summary = tools.run(
            "kafka-consumer-perf-test", "--topic", topic, "--group", f"perf-{protocol}-{topic}",
            "--num-records", "20000", "--timeout", "30000", "--command-property", f"group.protocol={protocol}",
        ).lines()[-1]  # fmt: skip
        assert int(summary.split(",")[4]) >= 20_000, summary


def test_kafkas_own_compaction_tester_is_content(make_node: NodeFactory) -> None:
    node = make_node("compacting", properties={"log.cleaner.backoff.ms": "500"})
    done = run_tool(
        "log-compaction-tester", "--bootstrap-server", node.bootstrap, "--messages", "20000", "--percent-deletes", "10",
        "--sleep", "5", timeout_s=120,
    )  # fmt: skip
    assert "Data verification is completed" in done.stdout, str(done)
