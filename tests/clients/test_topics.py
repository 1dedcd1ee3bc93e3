"""Topics through each client's admin calls: creation, configs, growth, deletion, re-creation; a thousand of them."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from tests.clients.interface import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_TOPIC,
    MESSAGE_TOO_LARGE,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_OR_PARTITION,
    Client,
    OpenProducer,
    ProducerSettings,
    Refused,
    Sent,
    refused,
)
from tests.clients.libraries import CLIENTS
from tests.compat.processes import wait_for
from tests.compat.wire import all_led
from tests.patience import within

NewTopic = Callable[..., str]


def visible(what: str, probe: Callable[[], bool]) -> None:
    """A change is acknowledged when the controller has it; the broker that answers the next request follows soon."""
    wait_for(what, probe, timeout_s=30)


def test_a_topic_is_created_listed_and_deleted(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic() + "-created"
    client.create_topics([topic], partitions=4, configs={"retention.ms": "3600000"})
    visible("the topic", lambda: topic in client.list_topics())
    assert client.partition_count(topic) == 4
    assert client.topic_configs(topic)["retention.ms"] == "3600000"
    with refused(TOPIC_ALREADY_EXISTS):
        client.create_topics([topic])
    client.delete_topic(topic)
    visible("the deletion", lambda: topic not in client.list_topics())
    with refused(UNKNOWN_TOPIC_OR_PARTITION):
        client.delete_topic(topic)


def test_a_bad_topic_is_refused(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic() + "-refused"
    for name, partitions, configs, error in [
        ("not/allowed", 1, {}, INVALID_TOPIC),
        (topic, 1, {"nonsense": "1"}, INVALID_CONFIG),
        (topic, 1, {"segment.bytes": "1"}, INVALID_CONFIG),
        (topic, 0, {}, INVALID_PARTITIONS),
    ]:
        with refused(error):
            client.create_topics([name], partitions, configs)
    assert topic not in client.list_topics()


def test_partitions_grow_and_take_records(client: Client, settings: ProducerSettings, new_topic: NewTopic) -> None:
    topic = new_topic()
    client.grow(topic, 3)
    visible("the new partitions", lambda: client.partition_count(topic) == 3)
    with client.producer(settings) as producer:
        assert producer.send(topic, [Sent(b"value", partition=2)]) == [0]
    assert [record.value for record in client.fetch(topic, 1, partition=2)] == [b"value"]
    with refused(INVALID_PARTITIONS):
        client.grow(topic, 2)


def test_an_incremental_change_leaves_other_configs_alone(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(**{"retention.ms": "3600000"})
    if not client.alters_incrementally:
        client.replace_configs(topic, {"max.message.bytes": "2000", "retention.ms": "3600000"})
    else:
        client.set_config(topic, "max.message.bytes", "2000")
        with refused(INVALID_CONFIG):
            client.set_config(topic, "retention.ms", "soon")
    visible("the change", lambda: client.topic_configs(topic)["max.message.bytes"] == "2000")
    assert client.topic_configs(topic)["retention.ms"] == "3600000"


def test_a_legacy_change_puts_new_configs_in_place_of_the_old(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(**{"retention.ms": "3600000"})
    client.replace_configs(topic, {"max.message.bytes": "2000"})
    visible("the change", lambda: client.topic_configs(topic)["max.message.bytes"] == "2000")
    retention_ms = "3600000" if client.legacy_alter_keeps_others else "604800000"
    assert client.topic_configs(topic)["retention.ms"] == retention_ms


def test_a_changed_config_reaches_an_open_producer(
    client: Client, settings: ProducerSettings, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with client.producer(settings) as producer:
        producer.send(topic, [Sent(b"x" * 2_000)])
        client.replace_configs(topic, {"max.message.bytes": "1000"})
        visible("the limit", lambda: too_large(producer, topic))


def too_large(producer: OpenProducer, topic: str) -> bool:
    try:
        producer.send(topic, [Sent(b"x" * 2_000)])
    except Refused as refusal:
        return refusal.code == MESSAGE_TOO_LARGE
    return False


def topic_id(bootstrap: str, topic: str) -> str:
    """The id of a topic whose leader is at work."""
    wait_for("the topic's leader", lambda: all_led(bootstrap, [topic]), timeout_s=30)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return str(admin.describe_topics(TopicCollection([topic]))[topic].result(within(30)).topic_id)


def test_a_topic_made_again_is_another_topic(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic()
    first_id = topic_id(client.bootstrap, topic)
    with client.producer(ProducerSettings()) as producer:
        producer.send(topic, [Sent(b"old")] * 5)
    client.delete_topic(topic)
    client.create_topics([topic])
    visible("another id", lambda: topic_id(client.bootstrap, topic) != first_id)
    assert client.watermarks(topic) == (0, 0)


def test_an_open_producer_goes_on_when_its_topic_is_made_again(
    client: Client, settings: ProducerSettings, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with client.producer(settings) as producer:
        producer.send(topic, [Sent(b"old %d" % number) for number in range(5)])
        client.delete_topic(topic)
        client.create_topics([topic])
        producer.send(topic, [Sent(b"new")])
    assert [record.value for record in client.fetch(topic, 1)] == [b"new"]


def test_a_thousand_topics_are_created_and_listed_by_every_client(bootstrap: str, new_topic: NewTopic) -> None:
    prefix = new_topic()
    every = [make(bootstrap) for make in CLIENTS.values()]
    parts = [[f"{prefix}-{number:04}" for number in range(start, 1_000, len(every))] for start in range(len(every))]
    for client, names in zip(every, parts, strict=True):
        client.create_topics(names)
    made = {name for names in parts for name in names}
    assert len(made) == 1_000
    for client in every:
        visible("a thousand topics", lambda: made <= client.list_topics())  # noqa: B023 (called before the loop goes on)
        with client.producer(ProducerSettings()) as producer:
            producer.send(f"{prefix}-0999", [Sent(b"value")])
    assert len(every[0].fetch(f"{prefix}-0999", len(every))) == len(every)
