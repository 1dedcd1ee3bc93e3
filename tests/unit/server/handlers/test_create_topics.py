from __future__ import annotations

import pytest

from penstock.model.errors import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    REQUEST_TIMED_OUT,
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
)
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import create_topics
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

Topic = CreateTopicsRequest.CreatableTopic
Config = CreateTopicsRequest.CreatableTopicConfig
Assignment = CreateTopicsRequest.CreatableReplicaAssignment


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> Topic:
    given = [Config(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return Topic(name=name, num_partitions=partitions, replication_factor=replicas, configs=given)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_a_topic_that_is_published_when_answered(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(create_topics, CreateTopicsRequest(topics=[topic("orders", 3)]), version)
        (result,) = reply.topics
        assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
        made = plane.image.topic("orders")
        assert made is not None
        assert len(made.partitions) == 3
        if version >= 5:
            assert (result.num_partitions, result.replication_factor) == (3, 1)
            assert {each.name: each.value for each in result.configs}["cleanup.policy"] == "delete"
        if version >= 7:
            assert result.topic_id == made.id

    walk(steps)


def test_defaults_of_the_broker_are_taken_for_minus_one() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.ask(create_topics, CreateTopicsRequest(topics=[topic("orders", -1, -1)]), 4)
        made = plane.image.topic("orders")
        assert made is not None
        assert len(made.partitions) == 6

    walk(steps, properties={"num.partitions": "6"})


def test_validate_only_answers_alike_and_creates_nothing() -> None:
    async def steps(plane: ControlPlane) -> None:
        request = CreateTopicsRequest(topics=[topic("orders", 3), topic("a b")], validate_only=True)
        reply = await plane.ask(create_topics, request, 7)
        assert [each.error_code for each in reply.topics] == [0, INVALID_TOPIC_EXCEPTION.code]
        assert plane.image.topics == {}

    walk(steps)


def test_each_topic_is_refused_for_its_own_reason() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("there")
        request = CreateTopicsRequest(
            topics=[
                topic("there"),
                topic("a b"),
                topic("none", 0),
                topic("three", 1, 3),
                topic("zero", 1, 0),
                topic("odd", nonsense="1"),
                topic("bad", retention_ms="soon"),
                Topic(
                    name="placed",
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[Assignment(partition_index=0, broker_ids=[9])],
                ),
                topic("fine"),
            ]
        )
        reply = await plane.ask(create_topics, request, 7)
        assert [each.error_code for each in reply.topics] == [
            TOPIC_ALREADY_EXISTS.code,
            INVALID_TOPIC_EXCEPTION.code,
            INVALID_PARTITIONS.code,
            INVALID_REPLICATION_FACTOR.code,
            INVALID_REPLICATION_FACTOR.code,
            INVALID_CONFIG.code,
            INVALID_CONFIG.code,
            INVALID_REPLICA_ASSIGNMENT.code,
            0,
        ]
        assert all(each.error_message for each in reply.topics[:-1])
        assert {each.name for each in plane.image.topics.values()} == {"there", "fine"}

    walk(steps)


def test_a_name_given_twice_and_the_metadata_topic_are_refused() -> None:
    async def steps(plane: ControlPlane) -> None:
        request = CreateTopicsRequest(topics=[topic("twice"), topic("twice"), topic("__cluster_metadata"), topic("ok")])
        reply = await plane.ask(create_topics, request, 7)
        assert {each.name: each.error_code for each in reply.topics} == {
            "ok": 0,
            "twice": INVALID_REQUEST.code,
            "__cluster_metadata": INVALID_REQUEST.code,
        }

    walk(steps)


def test_a_timeout_of_zero_answers_at_once_and_the_topic_still_comes() -> None:
    async def steps(plane: ControlPlane) -> None:
        request = CreateTopicsRequest(topics=[topic("late")], timeout_ms=0)
        reply = await plane.ask(create_topics, request, 7)
        assert reply.topics[0].error_code == REQUEST_TIMED_OUT.code
        await plane.metadata.published(plane.quorum.end)
        assert plane.image.topic("late") is not None

    walk(steps)


def test_creating_takes_a_right_on_the_cluster_or_on_the_topic() -> None:
    no = Recording(
        Asked(Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster"),
        Asked(Operation.CREATE, ResourceType.TOPIC, "theirs"),
        Asked(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "mine"),
    )

    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(create_topics, CreateTopicsRequest(topics=[topic("mine"), topic("theirs")]), 7)
        mine, theirs = reply.topics
        assert (mine.error_code, mine.topic_config_error_code) == (0, TOPIC_AUTHORIZATION_FAILED.code)
        assert (mine.num_partitions, mine.configs) == (-1, [])
        assert (theirs.name, theirs.error_code) == ("theirs", TOPIC_AUTHORIZATION_FAILED.code)

    walk(steps, authorizer=no)
