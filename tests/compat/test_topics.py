"""kafka-topics: create, list, describe, alter, delete, and how each is refused."""

from __future__ import annotations

import re

import pytest

from tests.compat.apache.tools import Tools

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

PARTITION = "\tTopic: {topic}\tPartition: {index}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "


def describe(tools: Tools, topic: str) -> list[str]:
    return [line for line in tools.run("kafka-topics", "--describe", "--topic", topic).stdout.splitlines() if line]


def described_configs(heading: str) -> set[str]:
    return set(heading.partition("Configs: ")[2].split(","))


def test_a_created_topic_is_listed_and_described(tools: Tools, topic: str) -> None:
    created = tools.run(
        "kafka-topics", "--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=1000000"
    )
    assert created.lines() == [f"Created topic {topic}."]
    assert topic in tools.run("kafka-topics", "--list").lines()
    heading, *partitions = describe(tools, topic)
    assert re.match(rf"Topic: {topic}\tTopicId: [\w-]{{22}}\tPartitionCount: 3\tReplicationFactor: 1\tC", heading)
    # The cluster-wide default is a dynamic config of a fresh cluster, and the properties file sets the segment size.
    assert described_configs(heading) == {"min.insync.replicas=1", "segment.bytes=1073741824", "retention.ms=1000000"}
    assert partitions == [PARTITION.format(topic=topic, index=index) for index in range(3)]


def test_a_topic_takes_the_brokers_defaults_when_none_are_given(tools: Tools, topic: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic)
    assert "PartitionCount: 1\tReplicationFactor: 1" in describe(tools, topic)[0]


def test_a_manual_assignment_sets_the_number_of_partitions(tools: Tools, topic: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic, "--replica-assignment", "1,1")
    assert "PartitionCount: 2\tReplicationFactor: 1" in describe(tools, topic)[0]


def test_an_existing_topic_is_not_created_again(tools: Tools, topic: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic)
    again = tools.fail("kafka-topics", "--create", "--topic", topic)
    assert "org.apache.kafka.common.errors.TopicExistsException" in again.stderr
    assert tools.run("kafka-topics", "--create", "--topic", topic, "--if-not-exists").lines() == []


@pytest.mark.parametrize(
    ("arguments", "exception"),
    [
        (["--topic", "bad/name"], "InvalidTopicException"),
        (["--topic", "unknown-config", "--config", "nonsense=1"], "InvalidConfigurationException"),
        (["--topic", "too-many-replicas", "--replication-factor", "2"], "InvalidReplicationFactorException"),
        (["--topic", "unknown-broker", "--replica-assignment", "7"], "InvalidReplicaAssignmentException"),
    ],
)
def test_a_bad_topic_is_refused_with_its_own_error(tools: Tools, arguments: list[str], exception: str) -> None:
    assert f"org.apache.kafka.common.errors.{exception}" in tools.fail("kafka-topics", "--create", *arguments).stderr
    assert arguments[1] not in tools.run("kafka-topics", "--list").lines()


def test_partitions_grow_and_never_shrink(tools: Tools, topic: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic, "--partitions", "3")
    tools.run("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in describe(tools, topic)[0]
    assert len(describe(tools, topic)) == 6
    refused = tools.fail("kafka-topics", "--alter", "--topic", topic, "--partitions", "2")
    assert "org.apache.kafka.common.errors.InvalidPartitionsException" in refused.stderr


def test_healthy_topics_are_in_none_of_the_filters(tools: Tools, topic: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic)
    for worry in ("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"):
        assert tools.run("kafka-topics", "--describe", worry).lines() == []


def test_a_deleted_topic_is_gone_and_its_name_is_free_again(tools: Tools, topic: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic)
    first_id = describe(tools, topic)[0].split("\t")[1]
    assert tools.run("kafka-topics", "--delete", "--topic", topic).lines() == []
    assert topic not in tools.run("kafka-topics", "--list").lines()
    again = tools.fail("kafka-topics", "--delete", "--topic", topic)
    assert f"Topic '{topic}' does not exist as expected" in again.stdout
    tools.run("kafka-topics", "--create", "--topic", topic)
    assert describe(tools, topic)[0].split("\t")[1] != first_id
