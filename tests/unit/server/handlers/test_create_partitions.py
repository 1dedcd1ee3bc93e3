from __future__ import annotations

import pytest

from penstock.model.errors import (
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import create_partitions
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

Topic = CreatePartitionsRequest.CreatePartitionsTopic
Assignment = CreatePartitionsRequest.CreatePartitionsAssignment


def grow(*topics: Topic, **said: bool) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=list(topics), timeout_ms=30_000, **said)


def to(name: str, count: int, *assigned: list[int]) -> Topic:
    assignments = [Assignment(broker_ids=brokers) for brokers in assigned] if assigned else None
    return Topic(name=name, count=count, assignments=assignments)


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions_that_are_published_when_answered(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders", 2)
        reply = await plane.ask(create_partitions, grow(to("orders", 5)), version)
        assert [(each.name, each.error_code, each.error_message) for each in reply.results] == [("orders", 0, None)]
        orders = plane.image.topic("orders")
        assert orders is not None
        assert len(orders.partitions) == 5

    walk(steps)


def test_each_topic_is_refused_for_its_own_reason() -> None:
    async def steps(plane: ControlPlane) -> None:
        for name in ("orders", "events", "same"):
            await plane.create(name, 2)
        request = grow(to("orders", 1), to("none", 3), to("events", 3, [7]), to("same", 3), to("same", 3))
        reply = await plane.ask(create_partitions, request, 3)
        assert {each.name: each.error_code for each in reply.results} == {
            "orders": INVALID_PARTITIONS.code,
            "none": UNKNOWN_TOPIC_OR_PARTITION.code,
            "events": INVALID_REPLICA_ASSIGNMENT.code,
            "same": INVALID_REQUEST.code,
        }

    walk(steps)


def test_validate_only_adds_nothing() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders", 2)
        reply = await plane.ask(create_partitions, grow(to("orders", 5), validate_only=True), 3)
        orders = plane.image.topic("orders")
        assert orders is not None
        assert (reply.results[0].error_code, len(orders.partitions)) == (0, 2)

    walk(steps)


def test_it_takes_the_right_to_alter_the_topic() -> None:
    no = Recording(Asked(Operation.ALTER, ResourceType.TOPIC, "orders"))

    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders", 2)
        reply = await plane.ask(create_partitions, grow(to("orders", 5)), 3)
        assert reply.results[0].error_code == TOPIC_AUTHORIZATION_FAILED.code

    walk(steps, authorizer=no)
