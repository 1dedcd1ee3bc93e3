from __future__ import annotations

import pytest

from penstock.model.errors import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.protocol.messages.alter_configs import AlterConfigsRequest
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import alter_configs
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

Resource = AlterConfigsRequest.AlterConfigsResource
Config = AlterConfigsRequest.AlterableConfig
TOPIC, BROKER, LOGGER = 2, 4, 8


def of(kind: int, name: str, **configs: str | None) -> Resource:
    given = [Config(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return Resource(resource_type=kind, resource_name=name, configs=given)


@pytest.mark.parametrize("version", range(3))
def test_every_version_replaces_all_configs_of_a_topic(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders", retention_ms="1000", segment_ms="2000")
        request = AlterConfigsRequest(resources=[of(TOPIC, "orders", retention_ms="5000")])
        reply = await plane.ask(alter_configs, request, version)
        assert [(each.error_code, each.resource_name) for each in reply.responses] == [(0, "orders")]
        assert plane.image.config(TOPIC, "orders") == {"retention.ms": "5000"}

    walk(steps)


def test_each_resource_is_refused_for_its_own_reason() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        await plane.create("events")
        request = AlterConfigsRequest(
            resources=[
                of(TOPIC, "none", retention_ms="5"),
                of(TOPIC, "orders", nonsense="5"),
                of(TOPIC, "events", retention_ms=None),
                of(LOGGER, "1", root="INFO"),
                of(99, "x"),
                of(BROKER, "7", log_retention_ms="5"),
                of(BROKER, "", node_id="5"),
            ]
        )
        reply = await plane.ask(alter_configs, request, 2)
        invalid = INVALID_REQUEST.code
        assert [each.error_code for each in reply.responses] == [
            UNKNOWN_TOPIC_OR_PARTITION.code,
            INVALID_CONFIG.code,
            *[invalid] * 5,
        ]
        assert all(each.error_message for each in reply.responses)

    walk(steps)


def test_a_resource_given_twice_is_refused_twice_and_validate_only_changes_nothing() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        twice = AlterConfigsRequest(resources=[of(TOPIC, "orders", retention_ms="5")] * 2)
        reply = await plane.ask(alter_configs, twice, 2)
        assert [each.error_code for each in reply.responses] == [INVALID_REQUEST.code] * 2
        only = AlterConfigsRequest(resources=[of(TOPIC, "orders", retention_ms="5")], validate_only=True)
        assert (await plane.ask(alter_configs, only, 2)).responses[0].error_code == 0
        assert plane.image.config(TOPIC, "orders") == {}

    walk(steps)


def test_it_takes_the_right_to_alter_configs() -> None:
    no = Recording(Asked(Operation.ALTER_CONFIGS, ResourceType.TOPIC, "orders"))

    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        request = AlterConfigsRequest(resources=[of(TOPIC, "orders", retention_ms="5")])
        reply = await plane.ask(alter_configs, request, 2)
        assert reply.responses[0].error_code == TOPIC_AUTHORIZATION_FAILED.code

    walk(steps, authorizer=no)
