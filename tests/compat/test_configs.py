"""kafka-configs: describe, alter and delete, for topics and for brokers, with sources and synonyms."""

from __future__ import annotations

import re

import pytest

from tests.compat.apache.tools import Tools

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


def configs(tools: Tools, *entity: str) -> dict[str, str]:
    """The described configs of an entity: name to the rest of its line."""
    lines = tools.run("kafka-configs", "--describe", *entity).lines()
    return dict(line.strip().split("=", 1) for line in lines[1:])


def alter(tools: Tools, *arguments: str) -> list[str]:
    return tools.run("kafka-configs", "--alter", *arguments).lines()


@pytest.fixture
def entity(tools: Tools, topic: str) -> tuple[str, ...]:
    tools.run("kafka-topics", "--create", "--topic", topic, "--config", "retention.ms=1000000")
    return ("--entity-type", "topics", "--entity-name", topic)


BROKER = ("--entity-type", "brokers", "--entity-name", "1")
ALL_BROKERS = ("--entity-type", "brokers", "--entity-default")


def test_topic_configs_are_added_described_and_deleted(tools: Tools, topic: str, entity: tuple[str, ...]) -> None:
    assert configs(tools, *entity) == {
        "retention.ms": "1000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000000}"
    }
    added = alter(tools, *entity, "--add-config", "cleanup.policy=[compact,delete],max.message.bytes=2000")
    assert added == [f"Completed updating config for topic {topic}."]
    assert configs(tools, *entity) == {
        "cleanup.policy": "compact,delete sensitive=false synonyms="
        "{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "max.message.bytes": "2000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000, "
        "DEFAULT_CONFIG:message.max.bytes=1048588}",
        "retention.ms": "1000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000000}",
    }
    alter(tools, *entity, "--delete-config", "retention.ms,cleanup.policy")
    assert set(configs(tools, *entity)) == {"max.message.bytes"}


def test_every_topic_config_is_described_with_kafkas_default(tools: Tools, entity: tuple[str, ...]) -> None:
    described = configs(tools, *entity, "--all")
    assert {name: line.partition(" ")[0] for name, line in described.items()} == {
        "cleanup.policy": "delete",
        "compression.gzip.level": "-1",
        "compression.lz4.level": "9",
        "compression.type": "producer",
        "compression.zstd.level": "3",
        "delete.retention.ms": "86400000",
        "file.delete.delay.ms": "60000",
        "flush.messages": "9223372036854775807",
        "flush.ms": "9223372036854775807",
        "follower.replication.throttled.replicas": "",
        "index.interval.bytes": "4096",
        "leader.replication.throttled.replicas": "",
        "local.retention.bytes": "-2",
        "local.retention.ms": "-2",
        "max.compaction.lag.ms": "9223372036854775807",
        "max.message.bytes": "1048588",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": "9223372036854775807",
        "message.timestamp.type": "CreateTime",
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
        "min.insync.replicas": "1",
        "preallocate": "false",
        "remote.log.copy.disable": "false",
        "remote.log.delete.on.disable": "false",
        "remote.storage.enable": "false",
        "retention.bytes": "-1",
        "retention.ms": "1000000",
        "segment.bytes": "1073741824",
        "segment.index.bytes": "10485760",
        "segment.jitter.ms": "0",
        "segment.ms": "604800000",
        "unclean.leader.election.enable": "false",
    }
    # A synonym is shown where the broker has that name set or by default: the hours and minutes of a time have none.
    assert described["min.insync.replicas"].endswith(
        "{DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1, DEFAULT_CONFIG:min.insync.replicas=1}"
    )
    assert described["segment.bytes"].endswith(
        "{STATIC_BROKER_CONFIG:log.segment.bytes=1073741824, DEFAULT_CONFIG:log.segment.bytes=1073741824}"
    )
    assert described["flush.messages"].endswith("{DEFAULT_CONFIG:log.flush.interval.messages=9223372036854775807}")
    for name in ("flush.ms", "segment.ms", "segment.jitter.ms", "remote.storage.enable"):
        assert described[name].endswith("synonyms={}")


@pytest.mark.parametrize(
    "change", ["retention.ms=x", "nonsense=1", "cleanup.policy=shred", "segment.bytes=10", "min.insync.replicas=0"]
)
def test_a_bad_topic_config_is_refused_and_changes_nothing(tools: Tools, entity: tuple[str, ...], change: str) -> None:
    refused = tools.fail("kafka-configs", "--alter", *entity, "--add-config", change)
    # The words are each broker's own; the error and the name in it are not.
    told = re.search(r"org\.apache\.kafka\.common\.errors\.InvalidConfigurationException: (.*)", refused.stderr)
    assert told, refused
    assert change.partition("=")[0] in told[1]
    assert set(configs(tools, *entity)) == {"retention.ms"}


def test_an_unknown_topic_has_no_configs(tools: Tools) -> None:
    described = tools.run("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "nowhere")
    assert described.lines() == ["The topic 'nowhere' doesn't exist and doesn't have dynamic config."]


def test_a_brokers_own_dynamic_config_is_set_and_unset(tools: Tools) -> None:
    assert alter(tools, *BROKER, "--add-config", "log.cleaner.threads=2") == ["Completed updating config for broker 1."]
    assert configs(tools, *BROKER) == {
        "log.cleaner.threads": "2 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.cleaner.threads=2, "
        "DEFAULT_CONFIG:log.cleaner.threads=1}"
    }
    alter(tools, *BROKER, "--delete-config", "log.cleaner.threads")
    assert configs(tools, *BROKER) == {}


def test_the_default_of_all_brokers_reaches_topics(tools: Tools, entity: tuple[str, ...]) -> None:
    alter(tools, *entity, "--delete-config", "retention.ms")
    altered = alter(tools, *ALL_BROKERS, "--add-config", "log.retention.ms=86400000")
    assert altered == ["Completed updating default config for brokers in the cluster."]
    try:
        assert configs(tools, *ALL_BROKERS) == {
            name: f"{value} sensitive=false synonyms={{DYNAMIC_DEFAULT_BROKER_CONFIG:{name}={value}}}"
            for name, value in {"log.retention.ms": "86400000", "min.insync.replicas": "1"}.items()
        }
        # Once the milliseconds are set, the hours behind them appear too.
        assert configs(tools, *entity, "--all")["retention.ms"] == (
            "86400000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=86400000, "
            "STATIC_BROKER_CONFIG:log.retention.hours=168, DEFAULT_CONFIG:log.retention.hours=168}"
        )
    finally:
        alter(tools, *ALL_BROKERS, "--delete-config", "log.retention.ms")
    assert set(configs(tools, *ALL_BROKERS)) == {"min.insync.replicas"}


def test_a_read_only_broker_config_cannot_be_changed(tools: Tools) -> None:
    refused = tools.fail("kafka-configs", "--alter", *BROKER, "--add-config", "node.id=7")
    assert re.search(r"org\.apache\.kafka\.common\.errors\.InvalidRequestException: .*node\.id", refused.stderr)


def test_a_broker_describes_what_its_file_and_its_defaults_say(tools: Tools, bootstrap: str) -> None:
    described = configs(tools, *BROKER, "--all")
    assert described["node.id"].startswith("1 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=1")
    assert described["listeners"].startswith(f"PLAINTEXT://{bootstrap},CONTROLLER://")
    assert described["num.io.threads"] == (
        "8 sensitive=false synonyms={STATIC_BROKER_CONFIG:num.io.threads=8, DEFAULT_CONFIG:num.io.threads=8}"
    )
    assert described["message.max.bytes"].startswith("1048588 sensitive=false")
    assert described["broker.rack"] == "null sensitive=false synonyms={}"
