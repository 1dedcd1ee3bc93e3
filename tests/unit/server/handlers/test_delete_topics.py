from __future__ import annotations

import pytest

from penstock.model.errors import (
    INVALID_REQUEST,
    TOPIC_AUTHORIZATION_FAILED,
    TOPIC_DELETION_DISABLED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import delete_topics
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

State = DeleteTopicsRequest.DeleteTopicState
TIMEOUT_MS = 30_000


def by_name(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=TIMEOUT_MS)


def by_state(*states: State) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=list(states), timeout_ms=TIMEOUT_MS)


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_by_name(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        request = by_name("orders", "none") if version < 6 else by_state(State(name="orders"), State(name="none"))
        reply = await plane.ask(delete_topics, request, version)
        assert {each.name: each.error_code for each in reply.responses} == {
            "orders": 0,
            "none": UNKNOWN_TOPIC_OR_PARTITION.code,
        }
        assert plane.image.topics == {}

    walk(steps)


def test_ids_and_names_cannot_be_mixed_up() -> None:
    async def steps(plane: ControlPlane) -> None:
        orders, events, unknown = await plane.create("orders"), await plane.create("events"), bytes(range(16))
        reply = await plane.ask(
            delete_topics,
            by_state(
                State(name=None, topic_id=orders),
                State(name=None, topic_id=unknown),
                State(name="events", topic_id=events),
                State(name=None),
                State(name="twice"),
                State(name="twice"),
            ),
            6,
        )
        found = {(each.name, each.topic_id): each.error_code for each in reply.responses}
        assert found == {
            ("orders", orders): 0,
            (None, unknown): UNKNOWN_TOPIC_ID.code,
            ("events", events): INVALID_REQUEST.code,
            (None, bytes(16)): INVALID_REQUEST.code,
            ("twice", bytes(16)): INVALID_REQUEST.code,
        }
        assert list(plane.image.ids) == ["events"]

    walk(steps)


def test_a_topic_created_again_has_another_id() -> None:
    async def steps(plane: ControlPlane) -> None:
        first = await plane.create("orders")
        await plane.ask(delete_topics, by_name("orders"), 5)
        assert await plane.create("orders") != first

    walk(steps)


def test_deletion_can_be_disabled() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        for version, error in ((2, INVALID_REQUEST), (5, TOPIC_DELETION_DISABLED)):
            reply = await plane.ask(delete_topics, by_name("orders"), version)
            assert reply.responses[0].error_code == error.code
        assert plane.image.topic("orders") is not None

    walk(steps, properties={"delete.topic.enable": "false"})


def test_who_may_not_describe_does_not_learn_the_name_of_an_id() -> None:
    no = Recording(
        Asked(Operation.DELETE, ResourceType.CLUSTER, "kafka-cluster"),
        Asked(Operation.DESCRIBE, ResourceType.TOPIC, "secret"),
        Asked(Operation.DELETE, ResourceType.TOPIC, "kept"),
    )

    async def steps(plane: ControlPlane) -> None:
        secret, kept = await plane.create("secret"), await plane.create("kept")
        states = (State(name=None, topic_id=secret), State(name=None, topic_id=kept))
        reply = await plane.ask(delete_topics, by_state(*states), 6)
        denied = TOPIC_AUTHORIZATION_FAILED.code
        assert [(each.name, each.error_code) for each in reply.responses] == [(None, denied), ("kept", denied)]
        assert len(plane.image.topics) == 2

    walk(steps, authorizer=no)
