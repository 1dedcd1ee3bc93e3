"""Every number that is shown is the broker's, over clusters drawn at random, to the last digit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.blocking import Admin, Producer
from penstock.client.admin import CommittedOffset
from penstock.client.admin.group_offsets import READS_COMMITTED
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedCluster, cluster
from tests.console.running import RunningConsole, running, settings_for
from tests.patience import wait_for
from tests.properties import examples

NODES = 2
FAR = st.integers(1 << 53, (1 << 63) - 2)
"""Positions that no float holds."""


@dataclass
class DrawnTopic:
    """Records by partition, and how many of them are deleted again."""

    records: list[int]
    trimmed: list[int]
    replicas: int
    retention_ms: int


@dataclass
class DrawnCluster:
    topics: list[DrawnTopic]
    groups: list[dict[tuple[int, int], tuple[int, bool]]]
    """By group: positions by topic and partition, and whether it says that it reads committed records only."""
    prefix: str = field(default_factory=lambda: f"n{uuid.uuid4().hex[:8]}-")


@st.composite
def clusters(draw: st.DrawFn) -> DrawnCluster:
    topics = []
    for _ in range(draw(st.integers(1, 4))):
        records = draw(st.lists(st.integers(0, 30), min_size=1, max_size=4))
        trimmed = [draw(st.integers(0, count)) for count in records]
        topics.append(DrawnTopic(records, trimmed, draw(st.integers(1, NODES)), draw(st.integers(1 << 53, 1 << 62))))
    places = [(at, index) for at, topic in enumerate(topics) for index in range(len(topic.records))]
    position = st.tuples(st.integers(0, 40) | FAR, st.booleans())
    return DrawnCluster(
        topics, draw(st.lists(st.dictionaries(st.sampled_from(places), position, min_size=1), max_size=4))
    )


@pytest.fixture(scope="module")
def nodes() -> Iterator[EmbeddedCluster]:
    with cluster(NODES) as found:
        yield found


@pytest.fixture(scope="module")
def console(nodes: EmbeddedCluster) -> Iterator[RunningConsole]:
    with running(settings_for(nodes.client_settings)) as found:
        yield found


@pytest.fixture(scope="module")
def admin(nodes: EmbeddedCluster) -> Iterator[Admin]:
    with Admin(**nodes.client_settings) as found:
        yield found


@settings(max_examples=examples(5))
@given(drawn=clusters())
def test_every_number_is_the_brokers(
    nodes: EmbeddedCluster, console: RunningConsole, admin: Admin, drawn: DrawnCluster
) -> None:
    names = [f"{drawn.prefix}{at}" for at in range(len(drawn.topics))]
    fill(nodes, admin, drawn, names)
    try:
        check_topics(console, admin, drawn, names)
        check_groups(console, admin, drawn)
        check_sums(console, admin)
    finally:
        for at in range(len(drawn.groups)):
            admin.delete_group(f"{drawn.prefix}g{at}")
        admin.delete_topics(names).checked()


def fill(nodes: EmbeddedCluster, admin: Admin, drawn: DrawnCluster, names: list[str]) -> None:
    with Producer(**nodes.client_settings) as producer:
        for name, topic in zip(names, drawn.topics, strict=True):
            admin.create_topic(name, len(topic.records), topic.replicas, {"retention.ms": str(topic.retention_ms)})
            for index, count in enumerate(topic.records):
                for number in range(count):
                    producer.send(name, b"v%d" % number, partition=index)
    for name, topic in zip(names, drawn.topics, strict=True):
        admin.trim_topic(name, dict(enumerate(topic.trimmed)))
    for at, positions in enumerate(drawn.groups):
        offsets = {
            TopicPartition(names[topic], index): CommittedOffset(offset, -1, READS_COMMITTED if committed else "")
            for (topic, index), (offset, committed) in positions.items()
        }
        admin.alter_group_offsets(f"{drawn.prefix}g{at}", offsets)


def leader_sizes(admin: Admin) -> dict[TopicPartition, int]:
    leaders = {
        TopicPartition(topic.name, each.partition): each.leader
        for topic in admin.topics(internal=True)
        for each in topic.partitions
    }
    return {
        item: replica.size_bytes
        for node, dirs in admin.describe_log_dirs().checked().items()
        for each in dirs
        for replica in each.replicas
        if leaders.get(item := TopicPartition(replica.topic, replica.partition)) == node
    }


def check_topics(console: RunningConsole, admin: Admin, drawn: DrawnCluster, names: list[str]) -> None:
    readers: dict[str, set[int]] = {name: set() for name in names}
    for at, positions in enumerate(drawn.groups):
        for topic, _ in positions:
            readers[names[topic]].add(at)
    ends = {name: admin.describe_topic(name) for name in names}

    def wanted() -> dict[str, Any]:
        sizes = leader_sizes(admin)
        told = {}
        for name, topic in zip(names, drawn.topics, strict=True):
            lags = [sum(lags_of(drawn, at, names, name)) for at in readers[name]]
            told[name] = {
                "partitions": len(topic.records),
                "replication": topic.replicas,
                "behind": 0,
                "leaderless": 0,
                "records": str(sum(topic.records) - sum(topic.trimmed)),
                "bytes": str(sum(sizes[TopicPartition(name, index)] for index in range(len(topic.records)))),
                "groups": len(readers[name]),
                "lag": str(max(lags)) if lags else None,
                "retention_ms": str(topic.retention_ms),
            }
        return told

    def shown() -> dict[str, Any]:
        items = console.get("topics", q=drawn.prefix)["items"]
        return {row["name"]: {number: row[number] for number in next(iter(wanted().values()))} for row in items}

    same("topics", shown, wanted)
    for name in names:
        partitions = console.get(f"topics/{name}/partitions")["partitions"]
        sizes = leader_sizes(admin)
        assert [
            (
                each["partition"],
                each["leader"],
                each["replicas"],
                each["start"],
                each["end"],
                each["last_stable"],
                each["bytes"],
            )
            for each in partitions
        ] == [
            (
                each.partition,
                each.leader,
                each.replicas,
                str(each.start),
                str(each.end),
                str(each.last_stable),
                str(sizes[TopicPartition(name, each.partition)]),
            )
            for each in ends[name].partitions
        ]


def lags_of(drawn: DrawnCluster, group: int, names: list[str], topic: str | None = None) -> list[int]:
    return [
        max(drawn.topics[at].records[index] - offset, 0)
        for (at, index), (offset, _) in drawn.groups[group].items()
        if topic is None or names[at] == topic
    ]


def check_groups(console: RunningConsole, admin: Admin, drawn: DrawnCluster) -> None:
    names = [f"{drawn.prefix}g{at}" for at in range(len(drawn.groups))]
    topics = [f"{drawn.prefix}{at}" for at in range(len(drawn.topics))]

    def wanted() -> dict[str, Any]:
        return {
            name: {
                "state": "Empty",
                "members": 0,
                "lag": str(sum(lags_of(drawn, at, topics))),
                "topics": sorted({topics[topic] for topic, _ in drawn.groups[at]}),
                "unseen": None,
            }
            for at, name in enumerate(names)
        }

    def shown() -> dict[str, Any]:
        items = console.get("groups", q=f"{drawn.prefix}g")["items"]
        return {row["group"]: {number: row[number] for number in next(iter(wanted().values()))} for row in items}

    same("groups", shown, wanted)
    for name in names:
        known = {(lag.topic, lag.partition): lag for lag in admin.group_lag(name)}
        page = console.get(f"groups/{name}")
        assert {
            (each["topic"], each["partition"]): (each["committed"], each["start"], each["end"], each["lag"])
            for each in page["partitions"]
        } == {at: (str(lag.committed), str(lag.start), str(lag.end), str(lag.lag)) for at, lag in known.items()}
        assert page["lag"] == str(sum(lag.lag or 0 for lag in known.values()))
        for topic in page["topics"]:
            (read,) = [each for each in console.get(f"topics/{topic}/consumers")["groups"] if each["group"] == name]
            assert {
                each["partition"]: (each["committed"], each["end"], each["lag"]) for each in read["partitions"]
            } == {
                index: (str(lag.committed), str(lag.end), str(lag.lag))
                for (of, index), lag in known.items()
                if of == topic
            }


def check_sums(console: RunningConsole, admin: Admin) -> None:
    def wanted() -> dict[str, Any]:
        topics, groups = admin.topics(internal=True), admin.groups()
        sizes = leader_sizes(admin)
        internal = sum(topic.internal or topic.name.startswith("__") for topic in topics)
        return {
            "brokers": NODES,
            "alive": NODES,
            "topics": len(topics) - internal,
            "internal": internal,
            "partitions": sum(len(topic.partitions) for topic in topics),
            "groups": len(groups),
            "bytes": str(sum(sizes.values())),
        }

    def shown() -> dict[str, Any]:
        told = console.get("overview")["cluster"]
        return {number: told[number] for number in wanted()}

    same("the overview", shown, wanted)

    def replicas() -> dict[int, Any]:
        topics = admin.topics(internal=True)
        return {
            node: (
                sum(each.leader == node for topic in topics for each in topic.partitions),
                sum(node in each.replicas for topic in topics for each in topic.partitions),
            )
            for node in range(1, NODES + 1)
        }

    def cells() -> dict[int, Any]:
        found = {node: [0, 0] for node in range(1, NODES + 1)}
        told = console.get("map")
        for cell in told["cells"]:
            found[cell["broker"]][0] += cell["leaders"]
            found[cell["broker"]][1] += cell["replicas"]
        assert {row["id"]: [row["leaders"], row["replicas"]] for row in told["brokers"]} == found
        return {node: tuple(counts) for node, counts in found.items()}

    same("the map", cells, replicas)


def same(what: str, shown: Any, wanted: Any) -> None:
    """What is shown comes to be what is wanted; both are told where it does not."""
    last: list[Any] = []

    def agree() -> bool:
        last[:] = [shown(), wanted()]
        return bool(last[0] == last[1])

    try:
        wait_for(f"the numbers of {what}", agree, timeout_s=20)
    except AssertionError:
        assert last[0] == last[1], f"what {what} shows is what the brokers say"
        raise
