"""What a node does with lines for the audit topic, row by row of the tables."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.metadata.image import ClusterImage
from penstock.model.errors import (
    INVALID_TOPIC_EXCEPTION,
    MESSAGE_TOO_LARGE,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.model.ids import AUDIT_TOPIC, NodeId
from penstock.protocol.batch import read_records
from penstock.protocol.disk.metadata_topics import TopicRecord
from penstock.server.auditing.outlet import Line
from penstock.server.auditing.topic_plan import PATIENT_ATTEMPTS, Answer, Make, Wait, Write, answer_of, plan, request_of
from penstock.server.peers import Address
from tests.unit.metadata.worlds import applied, broker, partition, uuid_of

TOPIC = TopicRecord(name=AUDIT_TOPIC, topic_id=uuid_of(7))


def image(*records: Any) -> ClusterImage:
    return applied(list(records))


def step(cluster: ClusterImage, node_id: int = 1, attempt: int = 0, replicas: int = 1) -> Make | Wait | Write:
    return plan(cluster, node_id, "PLAINTEXT", attempt, replicas)


def to(leader: int, index: int) -> Write:
    return Write(NodeId(leader), Address(f"host-{leader}", 9092), index)


def test_a_topic_is_made_when_there_is_none_and_somebody_to_have_it() -> None:
    assert step(image(broker(1))) == Make()
    for nobody in (image(broker(1, fenced=True)), image()):
        for attempt in (0, PATIENT_ATTEMPTS):
            assert step(nobody, attempt=attempt) == Wait("0 brokers are live, and it would have 1 replicas")


def test_a_cluster_that_starts_is_waited_for_and_one_that_is_small_is_not() -> None:
    small = image(broker(1), broker(2))
    why = Wait("2 brokers are live, and it would have 3 replicas")
    assert step(small, attempt=PATIENT_ATTEMPTS - 1, replicas=3) == why
    assert step(small, attempt=PATIENT_ATTEMPTS, replicas=3) == Make()
    assert step(image(broker(1), broker(2), broker(3)), replicas=3) == Make()


def test_the_leader_is_written_to_wherever_it_is() -> None:
    cluster = image(broker(1), broker(2), TOPIC, partition(7, 0, [2, 1]))
    assert [step(cluster, node_id) for node_id in (1, 2, 3)] == [to(2, 0)] * 3


def test_a_node_keeps_to_one_partition_and_takes_the_next_after_a_failure() -> None:
    cluster = image(broker(1), broker(2), TOPIC, partition(7, 0, [1]), partition(7, 1, [2]))
    assert [step(cluster, 1, attempt) for attempt in range(3)] == [to(2, 1), to(1, 0), to(2, 1)]
    assert step(cluster, 2) == to(1, 0)


def test_partitions_without_a_leader_are_passed_over() -> None:
    records = [broker(1), broker(2, fenced=True), TOPIC, partition(7, 0, [2]), partition(7, 1, [1], leader=-1)]
    assert step(image(*records)) == Wait("no partition of __penstock_audit has a leader")
    assert step(image(*records, partition(7, 2, [1]))) == to(1, 2)


def test_a_listener_that_brokers_do_not_have_is_named() -> None:
    cluster = image(broker(1), TOPIC, partition(7, 0, [1]))
    why = "brokers have no listener INTERNAL, which inter.broker.listener.name of this node names"
    assert plan(cluster, 3, "INTERNAL", 0, 1) == Wait(why)


def test_lines_are_records_with_the_time_of_their_events() -> None:
    request = request_of([Line(5, b'{"a":1}\n'), Line(7, b'{"b":2}\n')], 3)
    ((data,),) = (topic.partition_data for topic in request.topic_data)
    assert (request.acks, request.topic_data[0].name, data.index) == (-1, AUDIT_TOPIC, 3)
    assert data.records is not None
    records = read_records(data.records)
    assert [(each.timestamp, each.key, each.value) for each in records] == [
        (5, None, b'{"a":1}'),
        (7, None, b'{"b":2}'),
    ]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (NONE, Answer.DELIVERED),
        (NOT_LEADER_OR_FOLLOWER, Answer.AGAIN),
        (UNKNOWN_TOPIC_OR_PARTITION, Answer.AGAIN),
        (NOT_ENOUGH_REPLICAS, Answer.AGAIN),
        (MESSAGE_TOO_LARGE, Answer.LOST),
        (TOPIC_AUTHORIZATION_FAILED, Answer.LOST),
        (INVALID_TOPIC_EXCEPTION, Answer.LOST),
    ],
)
def test_what_passes_is_tried_again_and_what_stays_is_not(error: ErrorCode, answer: Answer) -> None:
    assert answer_of(error.code) is answer
