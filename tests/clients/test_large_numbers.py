"""Every client on topics after years: offsets that cross 31 and 53 bits, times of other centuries, old groups."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.request import urlopen

import confluent_kafka
import pytest

from penstock.blocking import Admin, Consumer, Producer
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker, broker
from penstock.testing.ancient import OLD_EPOCH, Age, OldTopic, Past, offsets_topic
from tests.clients.interface import OFFSET_OUT_OF_RANGE, Client, ProducerSettings, Sent, refused
from tests.clients.libraries import CLIENTS
from tests.patience import within

LAST = (1 << 63) - 1
BITS = (31, 53)
BEFORE = 10
"""How many offsets are left before the bits are used up."""

TIMES_MS = (1, 86_400_000, 4_102_444_800_000, 9_223_372_036_855, 253_402_300_800_000, (1 << 53) + 1)
"""1970, 2100, the first that nanoseconds cannot count, year 10000, and beyond what a float can count."""

ANY_TIME = {"message.timestamp.after.max.ms": str(LAST), "retention.ms": "-1"}


@pytest.fixture(scope="module")
def old() -> Iterator[EmbeddedBroker]:
    """A broker that has seen years: every client has topics of its own on it."""
    topics = [
        OldTopic(f"{name}-{bits}", [[1]], ANY_TIME, offset=(1 << bits) - BEFORE) for name in CLIENTS for bits in BITS
    ]
    topics.append(OldTopic("shared", [[1], [1]], ANY_TIME))
    past = Past(Age((1 << 53) - 1_000), [*topics, offsets_topic([[1]])], ["classic"], ["consumer"])
    with broker(past=past) as running:
        yield running


@pytest.fixture(params=CLIENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(name: str, old: EmbeddedBroker) -> Client:
    return CLIENTS[name](old.bootstrap_servers)


@pytest.mark.parametrize("bits", BITS)
def test_records_cross_the_end_of_a_width_and_come_back(client: Client, name: str, bits: int) -> None:
    topic, start = f"{name}-{bits}", (1 << bits) - BEFORE
    assert client.watermarks(topic) == (start, start)
    sent = [Sent(b"%d" % number, timestamp_ms=TIMES_MS[number % len(TIMES_MS)]) for number in range(4 * BEFORE)]
    with client.producer(ProducerSettings(idempotent=name != "kafka-python")) as producer:
        offsets = [offset for record in sent for offset in producer.send(topic, [record])]
    assert offsets == list(range(start, start + len(sent)))
    seen = client.fetch(topic, len(sent), offset=start)
    assert [(each.offset, each.value, each.timestamp_ms) for each in seen] == [
        (offset, record.value, record.timestamp_ms) for offset, record in zip(offsets, sent, strict=True)
    ]
    assert [each.offset for each in client.fetch(topic, 3, offset=(1 << bits) - 1)] == [
        (1 << bits) - 1,
        1 << bits,
        (1 << bits) + 1,
    ]
    assert client.offset_for_time(topic, TIMES_MS[-1]) == start + len(TIMES_MS) - 1
    assert client.offset_for_time(topic, TIMES_MS[-1] + 1) is None
    with refused(OFFSET_OUT_OF_RANGE):
        client.delete_records(topic, LAST)
    assert client.delete_records(topic, (1 << bits) + 1) == (1 << bits) + 1
    assert client.watermarks(topic) == ((1 << bits) + 1, start + len(sent))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_old_groups_go_on_in_the_next_generation_and_their_lag_is_exact(old: EmbeddedBroker, protocol: str) -> None:
    places = [TopicPartition("shared", 0), TopicPartition("shared", 1)]
    with Producer(bootstrap_servers=old.bootstrap_servers) as producer:
        for number in range(40):
            producer.send("shared", b"v", partition=number % 2)
        producer.flush()
    settings = {"bootstrap_servers": old.bootstrap_servers, "group_id": protocol, "group_protocol": protocol}
    with Consumer("shared", **settings, offset_reset="earliest", enable_auto_commit=False) as consumer:
        seen = 0
        while seen < 40:
            seen += len(consumer.poll(timeout_ms=within(10) * 1_000))
        ends = consumer.end_offsets(*places)
        consumer.commit({place: ends[place] - 7 for place in places})
        committed = consumer.committed(*places)
        assert [found and found.offset for found in committed.values()] == [ends[place] - 7 for place in places]
        membership = consumer._inner._engine().membership
        assert getattr(membership, "generation", -1) > OLD_EPOCH
    with Admin(bootstrap_servers=old.bootstrap_servers) as admin:
        assert {(row.committed, row.end, row.lag) for row in admin.group_lag(protocol)} == {
            (ends[place] - 7, ends[place], 7) for place in places
        }
    with urlopen(f"{old.admin_url}/metrics", timeout=within(30)) as page:
        lines = page.read().decode().splitlines()
    lags = [line for line in lines if line.startswith("kafka_consumergroup_lag{") and f'"{protocol}"' in line]
    assert [line.split()[-1] for line in lags] == ["7", "7"]
    offsets = [
        line for line in lines if line.startswith("kafka_topic_partition_current_offset{") and '"shared"' in line
    ]
    assert sorted(line.split()[-1] for line in offsets) == sorted(str(end) for end in ends.values())


def test_an_offset_of_63_bits_may_be_committed_and_costs_its_reader_a_reset(old: EmbeddedBroker) -> None:
    place = confluent_kafka.TopicPartition("shared", 0, LAST)
    settings = {"bootstrap.servers": old.bootstrap_servers, "group.id": "ahead", "auto.offset.reset": "earliest"}
    with Producer(bootstrap_servers=old.bootstrap_servers) as producer:
        producer.send("shared", b"here", partition=0)
    consumer = confluent_kafka.Consumer({**settings, "log_level": 0})
    consumer.commit(offsets=[place], asynchronous=False)
    assert [each.offset for each in consumer.committed([place], timeout=within(30))] == [LAST]
    consumer.close()
    with Admin(bootstrap_servers=old.bootstrap_servers) as admin:
        [row] = admin.group_lag("ahead")
    assert (row.committed, row.lag) == (LAST, 0)
    with Consumer(
        "shared", bootstrap_servers=old.bootstrap_servers, group_id="ahead", offset_reset="earliest"
    ) as reader:
        assert reader.poll(timeout_ms=within(30) * 1_000)


def test_a_broker_that_is_old_comes_back_from_its_files(old: EmbeddedBroker) -> None:
    topic, start = "penstock-53", (1 << 53) - BEFORE
    with Producer(bootstrap_servers=old.bootstrap_servers) as producer:
        before = producer.send(topic, b"before").result(within(30)).offset
        old.restart()
        after = producer.send(topic, b"after").result(within(60)).offset
    assert after == before + 1 > start
