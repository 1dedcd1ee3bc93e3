"""What Spark asks of a stream's reader, answered by a real broker, without Spark."""

from __future__ import annotations

import pickle
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from pyspark.sql.types import StructType

from penstock.blocking import Admin, Producer
from penstock.model.ids import TopicPartition
from penstock.spark.errors import BadOption, DataLost, Missing
from penstock.spark.offsets import OURS, StreamOffset
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.stream import TopicStreamReader
from penstock.spark.source.tasks import TaskSpans
from penstock.testing import broker
from penstock.testing.embedded import EmbeddedBroker
from tests.patience import within

ALL = ReadAllAvailable()
Offsets = dict[str, Any]


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running


@pytest.fixture(scope="module")
def admin(node: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=node.bootstrap_servers) as made:
        yield made


@pytest.fixture
def topic(admin: Admin) -> str:
    name = f"t-{uuid.uuid4().hex[:12]}"
    admin.create_topic(name, partitions=2)
    return name


def produce(node: EmbeddedBroker, topic: str, *counts: int, **named: Any) -> None:
    """So many records to each partition."""
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        for partition, count in enumerate(counts):
            for number in range(count):
                producer.send(topic, b"%d" % number, partition=partition, **named)
        producer.flush()


def reader(node: EmbeddedBroker, topic: str = "", **given: str) -> TopicStreamReader:
    named = {"kafka.bootstrap.servers": node.bootstrap_servers, "fetchOffset.retryIntervalMs": "5"} | given
    if topic:
        named["subscribe"] = topic
    return TopicStreamReader(SourceOptions.of(named, streaming=True), StructType())


def ranges(made: TopicStreamReader, start: Offsets, end: Offsets) -> list[tuple[str, int, int, int]]:
    tasks = made.partitions(start, end)
    assert all(isinstance(task, TaskSpans) for task in tasks)
    return sorted((s.topic, s.partition, s.start, s.end) for task in tasks for s in task.spans)  # type: ignore[attr-defined]


def ends(offset: Offsets, topic: str) -> dict[str, int]:
    return dict(offset.get(topic, {}))


def test_the_first_offset_is_a_wish_that_does_not_move(node: EmbeddedBroker, topic: str) -> None:
    made = reader(node, topic)
    first = made.initialOffset()
    produce(node, topic, 3, 0)
    assert first == made.initialOffset() == {topic: {"0": -1, "1": -1}}
    assert reader(node, topic, startingOffsets="earliest").initialOffset() == {topic: {"0": -2, "1": -2}}


def test_the_first_batch_writes_down_where_it_began(node: EmbeddedBroker, topic: str, admin: Admin) -> None:
    produce(node, topic, 5, 3)
    admin.trim_topic(topic, {0: 2})
    made = reader(node, topic, startingOffsets="earliest")
    start = made.initialOffset()
    end = made.latestOffset(start, ALL)
    assert ends(end, topic) == {"0": 5, "1": 3}
    ours = end[OURS]
    assert ours["from"] == {topic: {"0": 2, "1": 0}}
    assert ours["ids"] == {topic: admin.describe_topic(topic).id}
    assert ours["bootstrap"] == node.bootstrap_servers
    assert ours["epochs"] == {topic: {"0": 0, "1": 0}}
    assert ranges(made, start, end) == [(topic, 0, 2, 5), (topic, 1, 0, 3)]
    assert made.reportLatestOffset() == {topic: {"0": 5, "1": 3}}


def test_nothing_new_is_the_very_same_offset(node: EmbeddedBroker, topic: str) -> None:
    # Spark compares texts: another text would be another batch, for ever.
    made = reader(node, topic)
    end = made.latestOffset(made.initialOffset(), ALL)
    assert made.latestOffset(end, ALL) is end
    produce(node, topic, 1, 0)
    later = made.latestOffset(end, ALL)
    assert ends(later, topic) == {"0": 1, "1": 0}
    assert "from" not in later[OURS]
    assert ranges(made, end, later) == [(topic, 0, 0, 1)]


def test_a_batch_that_is_played_again_has_the_same_ranges(node: EmbeddedBroker, topic: str, admin: Admin) -> None:
    produce(node, topic, 4, 4)
    first = reader(node, topic)
    start = first.initialOffset()
    end = first.latestOffset(start, ALL)
    assert ranges(first, start, end) == []
    produce(node, topic, 2, 2)
    after_crash = reader(node, topic)
    assert ranges(after_crash, after_crash.initialOffset(), end) == []
    later = after_crash.latestOffset(end, ALL)
    planned = ranges(after_crash, end, later)
    assert planned == [(topic, 0, 4, 6), (topic, 1, 4, 6)]
    produce(node, topic, 9, 9)
    admin.grow_topic(topic, 4)
    assert ranges(reader(node, topic), end, later) == planned


def test_the_replay_of_an_earliest_start_does_not_follow_the_log_start(
    node: EmbeddedBroker, topic: str, admin: Admin
) -> None:
    produce(node, topic, 6, 0)
    made = reader(node, topic, startingOffsets="earliest")
    start = made.initialOffset()
    end = made.latestOffset(start, ALL)
    admin.trim_topic(topic, {0: 4})
    assert ranges(reader(node, topic, startingOffsets="earliest"), start, end) == [(topic, 0, 0, 6)]


def test_partial_json_and_a_wish_inside_it(node: EmbeddedBroker, topic: str) -> None:
    produce(node, topic, 5, 5)
    made = reader(node, topic, startingOffsets=f'{{"{topic}": {{"1": 3}}}}')
    assert made.initialOffset() == {topic: {"0": -1, "1": 3}}
    end = made.latestOffset(made.initialOffset(), ALL)
    assert ranges(made, made.initialOffset(), end) == [(topic, 1, 3, 5)]
    # A sink finds no batch before the first in Spark's log: it learns all begins from the end.
    assert end[OURS]["from"] == {topic: {"0": 5, "1": 3}}
    assert [(found.start, found.end) for found in StreamOffset.of_json(end).ranges_after(None)] == [(3, 5)]


def test_naming_a_partition_that_is_not_there_is_told(node: EmbeddedBroker, topic: str) -> None:
    with pytest.raises(BadOption, match="which this query does not read"):
        reader(node, topic, startingOffsets=f'{{"{topic}": {{"7": 3}}}}').initialOffset()


def test_starts_by_time(node: EmbeddedBroker, topic: str) -> None:
    produce(node, topic, 2, 2, timestamp=1_000)
    produce(node, topic, 2, 0, timestamp=2_000)
    with pytest.raises(Missing, match=f"{topic}-1 has no record at or after 1500 ms"):
        reader(node, topic, startingTimestamp="1500").initialOffset()
    made = reader(node, topic, startingTimestamp="1500", startingOffsetsByTimestampStrategy="latest")
    assert made.initialOffset() == {topic: {"0": 2, "1": -1}}
    made = reader(node, topic, startingOffsetsByTimestamp=f'{{"{topic}": {{"0": 1500}}}}')
    assert made.initialOffset() == {topic: {"0": 2, "1": -1}}


def test_a_limit_is_shared_and_the_rest_comes_later(node: EmbeddedBroker, topic: str) -> None:
    produce(node, topic, 90, 10)
    made = reader(node, topic, startingOffsets="earliest", maxOffsetsPerTrigger="40")
    limit = made.getDefaultReadLimit()
    assert limit == ReadMaxRows(40)
    start, seen = made.initialOffset(), []
    while True:
        end = made.latestOffset(start, limit)
        if end is start:
            break
        seen.append(ends(end, topic))
        start = end
    assert seen == [{"0": 36, "1": 4}, {"0": 72, "1": 8}, {"0": 90, "1": 10}]
    # Trigger.Once wants all there is.
    assert ends(made.latestOffset(made.initialOffset(), ALL), topic) == {"0": 90, "1": 10}


def test_a_batch_waits_for_enough_offsets(node: EmbeddedBroker, topic: str) -> None:
    produce(node, topic, 1, 0)
    made = reader(node, topic, startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    limit = made.getDefaultReadLimit()
    assert limit == ReadMinRows(10)
    start = made.latestOffset(made.initialOffset(), limit)
    assert ends(start, topic) == {"0": 1, "1": 0}, "the first batch does not wait"
    produce(node, topic, 9, 0)
    assert made.latestOffset(start, limit) is start
    assert made.latestOffset(start, ALL) is not start, "unless all is wanted"
    produce(node, topic, 0, 1)
    assert ends(made.latestOffset(start, limit), topic) == {"0": 10, "1": 1}


def test_a_batch_does_not_wait_for_ever(node: EmbeddedBroker, topic: str) -> None:
    made = reader(node, topic, minOffsetsPerTrigger="10", maxTriggerDelay="20ms", maxOffsetsPerTrigger="10")
    limit = made.getDefaultReadLimit()
    start = made.latestOffset(made.initialOffset(), limit)
    produce(node, topic, 1, 0)
    start = made.latestOffset(start, limit)
    produce(node, topic, 1, 0)
    deadline = time.monotonic() + within(10)
    while made.latestOffset(start, limit) is start:
        assert time.monotonic() < deadline


def test_available_now_is_what_was_there_when_it_began(node: EmbeddedBroker, topic: str, admin: Admin) -> None:
    produce(node, topic, 5, 5)
    made = reader(node, topic, startingOffsets="earliest", maxOffsetsPerTrigger="6", minOffsetsPerTrigger="6")
    made.prepareForTriggerAvailableNow()
    produce(node, topic, 5, 5)
    admin.grow_topic(topic, 3)
    start, limit, batches = made.initialOffset(), made.getDefaultReadLimit(), 0
    while (end := made.latestOffset(start, limit)) is not start:
        start, batches = end, batches + 1
    assert ends(start, topic) == {"0": 5, "1": 5}
    assert batches == 2


def test_a_new_partition_is_read_from_its_first_record(node: EmbeddedBroker, topic: str, admin: Admin) -> None:
    made = reader(node, topic)
    start = made.latestOffset(made.initialOffset(), ALL)
    admin.grow_topic(topic, 3)
    produce(node, topic, 0, 0, 4)
    end = made.latestOffset(start, ALL)
    assert end[OURS]["from"] == {topic: {"2": 0}}
    assert ranges(made, start, end) == [(topic, 2, 0, 4)]


def test_new_topics_of_a_pattern_appear_and_internal_ones_do_not(
    node: EmbeddedBroker, topic: str, admin: Admin
) -> None:
    made = reader(node, subscribePattern=f"^({topic}|__)")
    start = made.latestOffset(made.initialOffset(), ALL)
    assert start.keys() - {OURS} == {topic}
    admin.create_topic(f"{topic}-b", partitions=1)
    produce(node, f"{topic}-b", 2)
    end = made.latestOffset(start, ALL)
    assert ranges(made, start, end) == [(f"{topic}-b", 0, 0, 2)]


def test_a_pattern_may_match_nothing_yet(node: EmbeddedBroker, topic: str, admin: Admin) -> None:
    made = reader(node, subscribePattern=f"^{topic}-later")
    start = made.initialOffset()
    assert start == {}
    start = made.latestOffset(start, ALL)
    assert made.partitions({}, start) == []
    admin.create_topic(f"{topic}-later", partitions=1)
    produce(node, f"{topic}-later", 2)
    assert ends(made.latestOffset(start, ALL), f"{topic}-later") == {"0": 2}


def test_assigned_partitions_only(node: EmbeddedBroker, topic: str) -> None:
    produce(node, topic, 2, 2)
    made = reader(node, assign=f'{{"{topic}": [1]}}', startingOffsets="earliest")
    start = made.initialOffset()
    assert ranges(made, start, made.latestOffset(start, ALL)) == [(topic, 1, 0, 2)]
    with pytest.raises(Missing, match=f"assign names {topic}-9, which does not exist"):
        reader(node, assign=f'{{"{topic}": [1, 9]}}').initialOffset()


def test_a_deleted_topic_ends_the_query_or_is_left_out(node: EmbeddedBroker, topic: str, admin: Admin) -> None:
    admin.create_topic(f"{topic}-b", partitions=1)
    both = f"{topic},{topic}-b"
    start = reader(node, both).latestOffset(reader(node, both).initialOffset(), ALL)
    admin.delete_topic(f"{topic}-b")
    with pytest.raises(DataLost, match=f"topic '{topic}-b' is gone"):
        reader(node, both).latestOffset(start, ALL)
    careless = reader(node, both, failOnDataLoss="false")
    end = careless.latestOffset(start, ALL)
    assert end.keys() - {OURS} == {topic}
    assert careless.latestOffset(end, ALL) is end


@pytest.mark.parametrize("grown", [1, 50])
def test_a_topic_made_anew_is_not_taken_for_the_old_one(
    node: EmbeddedBroker, topic: str, admin: Admin, grown: int
) -> None:
    produce(node, topic, 10, 0)
    first = reader(node, topic, startingOffsets="earliest")
    start = first.latestOffset(first.initialOffset(), ALL)
    admin.delete_topic(topic)
    admin.create_topic(topic, partitions=2)
    produce(node, topic, grown, 0)
    with pytest.raises(DataLost, match="was deleted and created anew"):
        reader(node, topic).latestOffset(start, ALL)
    careless = reader(node, topic, failOnDataLoss="false")
    end = careless.latestOffset(start, ALL)
    assert end[OURS]["from"] == {topic: {"0": 0, "1": 0}}
    assert end[OURS]["ids"] != start[OURS]["ids"]
    assert ranges(careless, start, end) == [(topic, 0, 0, grown)]
    assert careless.latestOffset(end, ALL) is end


def test_an_offset_beyond_the_end_is_a_loss(node: EmbeddedBroker, topic: str) -> None:
    produce(node, topic, 3, 3)
    beyond = {topic: {"0": 99, "1": 3}}
    with pytest.raises(DataLost, match="ends at 3, but was to be read from 99"):
        reader(node, topic).latestOffset(beyond, ALL)
    careless = reader(node, topic, failOnDataLoss="false")
    end = careless.latestOffset(beyond, ALL)
    assert ends(end, topic) == {"0": 3, "1": 3}
    assert ranges(careless, beyond, end) == []


def test_an_offset_log_of_the_jvm_connector_is_read_on(node: EmbeddedBroker, topic: str) -> None:
    produce(node, topic, 5, 4)
    theirs, next_of_theirs = {topic: {"0": 2, "1": 4}}, {topic: {"0": 5, "1": 4}}
    made = reader(node, topic)
    assert ranges(made, theirs, next_of_theirs) == [(topic, 0, 2, 5)]
    assert ranges(made, {topic: {"0": 2}}, next_of_theirs) == [(topic, 0, 2, 5), (topic, 1, 0, 4)]
    # The next offset is ours, with all that ours tell.
    ours = made.latestOffset(next_of_theirs, ALL)
    assert ours[OURS]["from"] == next_of_theirs
    assert made.latestOffset(ours, ALL) is ours


def test_only_the_first_task_publishes_where_the_batch_begins(node: EmbeddedBroker, topic: str) -> None:
    produce(node, topic, 5, 5)
    made = reader(node, topic, startingOffsets="earliest", minPartitions="4")
    start = made.initialOffset()
    end = made.latestOffset(start, ALL)
    first, *others = made.partitions(start, end)
    assert isinstance(first, TaskSpans)
    assert first.publish is not None
    assert first.publish.offsets == {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 0}
    assert len(others) == 3
    assert [task.publish for task in others] == [None] * 3  # type: ignore[attr-defined]
    quiet = reader(node, topic, publishProgress="false")
    assert [task.publish for task in quiet.partitions(start, end)] == [None]  # type: ignore[attr-defined]


def test_readers_and_tasks_travel_without_what_they_know_of_the_cluster(node: EmbeddedBroker, topic: str) -> None:
    made = reader(node, topic, startingOffsets="earliest")
    end = made.latestOffset(made.initialOffset(), ALL)
    copy = pickle.loads(pickle.dumps(made))
    assert (copy.options, copy.schema) == (made.options, made.schema)
    assert ranges(copy, made.initialOffset(), end) == ranges(made, made.initialOffset(), end)


def test_a_batch_ends_where_the_first_open_transaction_begins(node: EmbeddedBroker, topic: str) -> None:
    produce(node, topic, 2, 0)
    committed = reader(node, topic, startingOffsets="earliest")
    everything = reader(node, topic, startingOffsets="earliest", **{"kafka.isolation.level": "read_uncommitted"})
    with Producer(node.bootstrap_servers, transactional_id=topic) as producer:
        producer.begin()
        producer.send(topic, b"open", partition=0).result()
        start = committed.latestOffset(committed.initialOffset(), ALL)
        assert ends(start, topic) == {"0": 2, "1": 0}
        beyond = everything.latestOffset(everything.initialOffset(), ALL)
        assert ends(beyond, topic) == {"0": 3, "1": 0}
        # Who has read everything so far waits for the transaction: nothing was cut off.
        assert committed.latestOffset(beyond, ALL) is beyond
        producer.abort()
    # The record and the marker are behind it, and neither is a row.
    after = committed.latestOffset(start, ALL)
    assert ranges(committed, start, after) == [(topic, 0, 2, 4)]
    assert ends(committed.latestOffset(beyond, ALL), topic) == {"0": 4, "1": 0}


def test_a_topic_that_does_not_exist_is_told_with_what_to_do(node: EmbeddedBroker, topic: str) -> None:
    with pytest.raises(Missing, match=rf"topic 'not-{topic}' does not exist on .* create it \(penstock topic create"):
        reader(node, f"not-{topic}").initialOffset()


def test_what_passes_is_tried_again(node: EmbeddedBroker, topic: str) -> None:
    made = reader(node, topic)
    node.fail(api="ListOffsets", code="NOT_LEADER_OR_FOLLOWER", times=2)
    node.fail(api="Metadata", code="LEADER_NOT_AVAILABLE", times=1)
    assert ends(made.latestOffset(made.initialOffset(), ALL), topic) == {"0": 0, "1": 0}


def test_an_unreachable_broker_is_told_in_time() -> None:
    options = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.default.api.timeout.ms": "300",
        "fetchOffset.retryIntervalMs": "50",
        "subscribe": "t",
    }
    made = TopicStreamReader(SourceOptions.of(options, streaming=True), StructType())
    began = time.monotonic()
    with pytest.raises(Missing, match=r"no broker answers at 127\.0\.0\.1:1 .* Is it running"):
        made.initialOffset()
    assert time.monotonic() - began < within(10)


def test_topics_may_be_taken_for_granted_for_a_while(node: EmbeddedBroker, topic: str, admin: Admin) -> None:
    made = reader(node, topic, **{"partition.metadata.cache.ttl.ms": "600000"})
    start = made.latestOffset(made.initialOffset(), ALL)
    admin.grow_topic(topic, 3)
    assert made.latestOffset(start, ALL) is start


def test_sizes_of_logs_are_learned_and_never_needed(node: EmbeddedBroker, topic: str) -> None:
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        for _ in range(20):
            producer.send(topic, bytes(5000), partition=0)
        producer.flush()
    made = reader(node, topic)
    rates = made._cluster.bytes_per_offset({topic})
    assert 5000 <= rates[TopicPartition(topic, 0)] < 5200
    node.fail(api="DescribeLogDirs", code="CLUSTER_AUTHORIZATION_FAILED", times=1)
    assert reader(node, topic)._cluster.bytes_per_offset({topic}) == {}


def test_offsets_round_trip_as_text(node: EmbeddedBroker, topic: str) -> None:
    made = reader(node, topic)
    end = made.latestOffset(made.initialOffset(), ALL)
    assert StreamOffset.of_json(end).to_json() == end
