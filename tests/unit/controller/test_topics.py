"""CreateTopics, DeleteTopics, CreatePartitions."""

from __future__ import annotations

import pytest

from penstock.controller.decision import Decision
from penstock.model.errors import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    POLICY_VIOLATION,
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
    TOPIC_DELETION_DISABLED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_topics import PartitionRecord, RemoveTopicRecord, TopicRecord
from penstock.protocol.disk.metadata_transactions import BeginTransactionRecord, EndTransactionRecord
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.unit.controller.desk import Desk, assigned, creation, topic, uuid_of


def node() -> Desk:
    desk = Desk()
    desk.join(1)
    return desk


def test_a_new_topic_is_a_record_its_configs_and_its_partitions_in_this_order() -> None:
    desk = node()
    decision = desk.decide(creation(topic("orders", 2, 1, retention_ms="1000")))
    made = desk.do(decision)
    topic_id = made[0].topic_id
    partition = PartitionRecord(
        topic_id=topic_id,
        replicas=[1],
        isr=[1],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[uuid_of(5001)],
    )
    first, second = (PartitionRecord(**{**_fields(partition), "partition_id": index}) for index in (0, 1))
    assert made == [
        TopicRecord(name="orders", topic_id=topic_id),
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1000"),
        first,
        second,
    ]
    result = decision.reply.topics[0]
    assert (result.name, result.topic_id, result.error_code) == ("orders", topic_id, 0)
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    told = {config.name: (config.value, config.config_source) for config in result.configs}
    assert told["retention.ms"] == ("1000", 1)
    assert told["cleanup.policy"] == ("delete", 5)


def _fields(record: PartitionRecord) -> dict[str, object]:
    return {
        name: getattr(record, name)
        for name in ("topic_id", "replicas", "isr", "leader", "leader_epoch", "partition_epoch", "directories")
    }


def test_validate_only_answers_as_if_and_writes_nothing() -> None:
    desk = node()
    decision = desk.decide(creation(topic("orders", 2), validate_only=True))
    assert decision.records == []
    assert decision.reply.topics[0].num_partitions == 2


def test_minus_one_takes_the_brokers_defaults() -> None:
    desk = Desk(num_partitions="3", default_replication_factor="2")
    desk.join(1, 2)
    reply = desk.ask(creation(topic("orders", -1, -1)))
    assert (reply.topics[0].num_partitions, reply.topics[0].replication_factor) == (3, 2)


def test_configs_are_told_only_to_whom_may_see_them() -> None:
    reply = node().ask(creation(topic("orders")), may_describe=lambda _name: False)
    result = reply.topics[0]
    assert (result.error_code, result.topic_config_error_code) == (0, TOPIC_AUTHORIZATION_FAILED.code)
    assert (result.configs, result.num_partitions) == ([], -1)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (topic(""), INVALID_TOPIC_EXCEPTION),
        (topic("."), INVALID_TOPIC_EXCEPTION),
        (topic("a/b"), INVALID_TOPIC_EXCEPTION),
        (topic("ü"), INVALID_TOPIC_EXCEPTION),
        (topic("x" * 250), INVALID_TOPIC_EXCEPTION),
        (topic("old_name"), INVALID_TOPIC_EXCEPTION),
        (topic("old.name"), TOPIC_ALREADY_EXISTS),
        (topic("__cluster_metadata"), INVALID_REQUEST),
        (topic("t", 0), INVALID_PARTITIONS),
        (topic("t", -2), INVALID_PARTITIONS),
        (topic("t", 2_000_000_000), POLICY_VIOLATION),
        (topic("t", 1, 0), INVALID_REPLICATION_FACTOR),
        (topic("t", 1, 2), INVALID_REPLICATION_FACTOR),
        (topic("t", 1, 1, no_such_config="1"), INVALID_CONFIG),
        (topic("t", 1, 1, retention_ms="soon"), INVALID_CONFIG),
        (assigned("t", {0: []}), INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", {0: [9]}), INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", {0: [1, 1]}), INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", {1: [1]}), INVALID_REPLICA_ASSIGNMENT),
        (
            CreateTopicsRequest.CreatableTopic(
                name="t",
                num_partitions=1,
                replication_factor=-1,
                assignments=[CreateTopicsRequest.CreatableReplicaAssignment(broker_ids=[1])],
            ),
            INVALID_REQUEST,
        ),
    ],
)
def test_what_cannot_be_created_is_refused_with_a_reason(
    wanted: CreateTopicsRequest.CreatableTopic, error: ErrorCode
) -> None:
    desk = node()
    desk.create("old.name")
    decision = desk.decide(creation(wanted))
    result = decision.reply.topics[0]
    assert (decision.records, result.error_code, bool(result.error_message)) == ([], error.code, True)
    assert result.configs is not None


def test_a_longest_name_is_legal() -> None:
    node().create("x" * 249)


def test_one_bad_topic_does_not_stop_the_others() -> None:
    desk = node()
    reply = desk.ask(creation(topic("bad", 0), topic("good"), topic("twice"), topic("twice")))
    assert [(each.name, each.error_code) for each in reply.topics] == [
        ("bad", INVALID_PARTITIONS.code),
        ("good", 0),
        ("twice", INVALID_REQUEST.code),
    ]
    assert list(desk.image.ids) == ["good"]


def test_two_new_topics_of_one_request_may_not_collide_either() -> None:
    reply = node().ask(creation(topic("a.b"), topic("a_b")))
    assert [each.error_code for each in reply.topics] == [0, INVALID_TOPIC_EXCEPTION.code]


def test_a_name_is_free_again_after_deletion() -> None:
    desk = node()
    desk.create("a.b")
    first = desk.image.ids["a.b"]
    desk.ask(DeleteTopicsRequest(topic_names=["a.b"]))
    desk.create("a_b")
    desk.ask(DeleteTopicsRequest(topic_names=["a_b"]))
    desk.create("a.b")
    assert desk.image.ids["a.b"] != first


def test_a_manual_assignment_is_taken_as_it_is() -> None:
    desk = Desk()
    desk.join(1, 2, 3)
    desk.ask(creation(assigned("t", {1: [3, 1], 0: [2, 3]})))
    made = desk.image.topic("t")
    assert made is not None
    assert [each.replicas for each in made.partitions] == [(2, 3), (3, 1)]
    assert [each.leader for each in made.partitions] == [2, 3]


def test_a_fenced_broker_is_a_replica_but_neither_in_sync_nor_leader() -> None:
    desk = Desk()
    desk.join(1)
    desk.register(2)
    desk.ask(creation(assigned("t", {0: [2, 1]})))
    made = desk.image.topic("t")
    assert made is not None
    assert (made.partitions[0].isr, made.partitions[0].leader) == ((1,), 1)
    reply = desk.ask(creation(assigned("u", {0: [2]})))
    assert reply.topics[0].error_code == INVALID_REPLICA_ASSIGNMENT.code


def test_a_large_request_is_one_transaction() -> None:
    desk = node()
    before = desk.image.copy()
    written = desk.do(desk.decide(creation(topic("big", 2_500))))
    assert isinstance(written[0], BeginTransactionRecord)
    assert isinstance(written[-1], EndTransactionRecord)
    assert written[0].name == "create topics"
    assert not before.topics
    big = desk.image.topic("big")
    assert big is not None
    assert len(big.partitions) == 2_500


def test_topics_are_deleted_by_name_and_by_id() -> None:
    desk = node()
    desk.create("a", 2)
    desk.create("b")
    wanted = [
        DeleteTopicsRequest.DeleteTopicState(name="a"),
        DeleteTopicsRequest.DeleteTopicState(topic_id=desk.image.ids["b"]),
    ]
    ids = dict(desk.image.ids)
    decision = desk.decide(DeleteTopicsRequest(topics=wanted), 6)
    assert [(each.name, each.topic_id, each.error_code) for each in decision.reply.responses] == [
        ("a", ids["a"], 0),
        ("b", ids["b"], 0),
    ]
    assert desk.do(decision) == [RemoveTopicRecord(topic_id=ids["a"]), RemoveTopicRecord(topic_id=ids["b"])]
    assert desk.image.topics == {}


def test_what_cannot_be_deleted_is_refused_with_a_reason() -> None:
    desk = node()
    desk.create("a")
    state = DeleteTopicsRequest.DeleteTopicState
    wanted = [
        state(name="none"),
        state(topic_id=uuid_of(9)),
        state(),
        state(name="a", topic_id=desk.image.ids["a"]),
        state(name="a"),
        state(topic_id=desk.image.ids["a"]),
    ]
    decision = desk.decide(DeleteTopicsRequest(topics=wanted), 6)
    assert [each.error_code for each in decision.reply.responses] == [
        UNKNOWN_TOPIC_OR_PARTITION.code,
        UNKNOWN_TOPIC_ID.code,
        INVALID_REQUEST.code,
        INVALID_REQUEST.code,
        0,
        INVALID_REQUEST.code,
    ]
    assert len(decision.records) == 1


def test_deletion_can_be_switched_off() -> None:
    desk = Desk(delete_topic_enable="false")
    desk.join(1)
    desk.create("a")
    request = DeleteTopicsRequest(topic_names=["a"])
    assert [desk.decide(request, version).reply.responses[0].error_code for version in (1, 3)] == [
        INVALID_REQUEST.code,
        TOPIC_DELETION_DISABLED.code,
    ]


def grow(name: str, count: int, assignments: list[list[int]] | None = None, **said: bool) -> CreatePartitionsRequest:
    wanted = CreatePartitionsRequest.CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=each) for each in assignments],
    )
    return CreatePartitionsRequest(topics=[wanted], **said)


def test_partitions_are_added_behind_the_last() -> None:
    desk = Desk()
    desk.join(1, 2)
    desk.create("t", 1, 2)
    assert desk.decide(grow("t", 3, validate_only=True)).records == []
    desk.ask(grow("t", 3))
    desk.ask(grow("t", 4, [[2, 1]]))
    made = desk.image.topic("t")
    assert made is not None
    assert [len(each.replicas) for each in made.partitions] == [2, 2, 2, 2]
    assert made.partitions[3].replicas == (2, 1)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (grow("none", 3), UNKNOWN_TOPIC_OR_PARTITION),
        (grow("t", 2), INVALID_PARTITIONS),
        (grow("t", 1), INVALID_PARTITIONS),
        (grow("t", 20_000), POLICY_VIOLATION),
        (grow("t", 4, [[1]]), INVALID_REPLICA_ASSIGNMENT),
        (grow("t", 3, [[1, 2]]), INVALID_REPLICA_ASSIGNMENT),
        (grow("t", 3, [[7]]), INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_that_cannot_be_added_are_refused(request_: CreatePartitionsRequest, error: ErrorCode) -> None:
    desk = Desk()
    desk.join(1, 2)
    desk.create("t", 2)
    decision = desk.decide(request_)
    assert (decision.records, decision.reply.results[0].error_code) == ([], error.code)


def test_what_is_told_of_a_new_topic_follows_the_brokers_configs() -> None:
    desk = node()

    def retention_ms(name: str) -> str | None:
        (result,) = desk.ask(creation(topic(name, 1, 1))).topics
        return next(each.value for each in result.configs if each.name == "retention.ms")

    assert (retention_ms("a"), retention_ms("b")) == ("604800000", "604800000")
    for resource, value in (("", "5000"), ("1", "6000")):
        record = ConfigRecord(resource_type=4, resource_name=resource, name="log.retention.ms", value=value)
        desk.do(Decision([(record, 0)]))
        assert retention_ms(f"after-{value}") == value
