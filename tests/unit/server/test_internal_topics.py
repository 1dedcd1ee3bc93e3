"""Internal topics are made with configs that a controller takes, whatever the settings say."""

from __future__ import annotations

import pytest

from penstock.model.config import BrokerSettings
from penstock.model.config.topic import TopicSettings
from penstock.model.ids import AUDIT_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.server.internal_topics import internal_topic
from tests.unit.server.served import PROPERTIES

SEGMENT_BYTES = {
    OFFSETS_TOPIC: "offsets.topic.segment.bytes",
    TRANSACTIONS_TOPIC: "transaction.state.log.segment.bytes",
}


@pytest.mark.parametrize("name", SEGMENT_BYTES)
@pytest.mark.parametrize(("set_to", "made_with"), [("1", 1_048_576), ("1048575", 1_048_576), ("2000000", 2_000_000)])
def test_segments_are_never_too_small_for_the_topic_to_be_made(name: str, set_to: str, made_with: int) -> None:
    topic = internal_topic(BrokerSettings.load({**PROPERTIES, SEGMENT_BYTES[name]: set_to}), name, brokers=3)
    assert topic is not None
    configs = {each.name: each.value or "" for each in topic.configs}
    assert TopicSettings.of(configs, {}).segment_bytes == made_with


def test_any_other_topic_is_none_of_theirs() -> None:
    assert internal_topic(BrokerSettings.load(PROPERTIES), "orders", brokers=3) is None


@pytest.mark.parametrize(("brokers", "replicas"), [(0, 1), (1, 1), (2, 2), (3, 3), (7, 3)])
def test_the_audit_topic_has_no_more_replicas_than_there_are_brokers(brokers: int, replicas: int) -> None:
    topic = internal_topic(BrokerSettings.load(PROPERTIES), AUDIT_TOPIC, brokers)
    assert topic is not None
    assert (topic.num_partitions, topic.replication_factor) == (1, replicas)
    configs = TopicSettings.of({each.name: each.value or "" for each in topic.configs}, {})
    assert configs.min_insync_replicas == 1
    assert (configs.retention_ms, configs.deletes, configs.compacts) == (604_800_000, True, False)
