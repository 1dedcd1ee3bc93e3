from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_CONFIG,
    INVALID_REQUEST,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest as Request
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import incremental_alter_configs
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def of(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Request.AlterConfigsResource:
    return Request.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[Request.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes],
    )


async def codes(plane: ControlPlane, *resources: Request.AlterConfigsResource, **said: bool) -> list[int]:
    request = Request(resources=list(resources), **said)
    reply = await plane.ask(incremental_alter_configs, request, 1)
    assert [(each.resource_type, each.resource_name) for each in reply.responses] == [
        (each.resource_type, each.resource_name) for each in resources
    ]
    assert all(each.error_message for each in reply.responses if each.error_code)
    return [each.error_code for each in reply.responses]


@pytest.fixture
def quiet_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("penstock.test-of-levels")
    before = logger.level, logging.getLogger("penstock").level
    yield logger
    logger.setLevel(before[0])
    logging.getLogger("penstock").setLevel(before[1])


@pytest.mark.parametrize("version", range(2))
def test_every_version_changes_only_what_it_names(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders", retention_ms="1000", segment_ms="2000")
        change = of(TOPIC, "orders", ("retention.ms", SET, "5000"), ("segment.ms", DELETE, None))
        reply = await plane.ask(incremental_alter_configs, Request(resources=[change]), version)
        assert reply.responses[0].error_code == 0
        assert plane.image.config(TOPIC, "orders") == {"retention.ms": "5000"}

    walk(steps)


def test_lists_are_appended_to_and_subtracted_from() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        assert await codes(plane, of(TOPIC, "orders", ("cleanup.policy", APPEND, "compact"))) == [0]
        assert plane.image.config(TOPIC, "orders")["cleanup.policy"] == "delete,compact"
        assert await codes(plane, of(TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete"))) == [0]
        assert plane.image.config(TOPIC, "orders")["cleanup.policy"] == "compact"
        assert await codes(plane, of(TOPIC, "orders", ("retention.ms", APPEND, "5"))) == [INVALID_CONFIG.code]

    walk(steps)


def test_brokers_groups_and_client_metrics_are_cluster_state() -> None:
    async def steps(plane: ControlPlane) -> None:
        changes = (
            of(BROKER, "1", ("log.retention.ms", SET, "60000")),
            of(BROKER, "", ("message.max.bytes", SET, "2000000")),
            of(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
            of(CLIENT_METRICS, "all", ("interval.ms", SET, "1000")),
        )
        assert await codes(plane, *changes) == [0, 0, 0, 0]
        assert plane.image.config(BROKER, "1") == {"log.retention.ms": "60000"}
        assert plane.image.config(BROKER, "")["message.max.bytes"] == "2000000"
        assert plane.image.config(GROUP, "g") == {"consumer.session.timeout.ms": "50000"}
        assert plane.image.config(CLIENT_METRICS, "all") == {"interval.ms": "1000"}

    walk(steps)


def test_each_resource_is_refused_for_its_own_reason() -> None:
    async def steps(plane: ControlPlane) -> None:
        for name in ("a", "b", "c", "d", "e"):
            await plane.create(name)
        refused = await codes(
            plane,
            of(TOPIC, "none", ("retention.ms", SET, "5")),
            of(TOPIC, "a", ("nonsense", SET, "5")),
            of(TOPIC, "b", ("retention.ms", SET, None)),
            of(TOPIC, "c", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
            of(TOPIC, "d", ("retention.ms", 9, "1")),
            of(99, "x", ("a", SET, "b")),
            of(BROKER, "7", ("log.retention.ms", SET, "5")),
            of(BROKER, "", ("node.id", SET, "5")),
            of(TOPIC, "e", ("retention.ms", SET, "5")),
        )
        assert refused == [UNKNOWN_TOPIC_OR_PARTITION.code, INVALID_CONFIG.code, *[INVALID_REQUEST.code] * 6, 0]
        assert await codes(plane, *[of(TOPIC, "e", ("retention.ms", SET, "6"))] * 2) == [INVALID_REQUEST.code] * 2

    walk(steps)


def test_validate_only_changes_nothing() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        end = plane.quorum.end
        assert await codes(plane, of(TOPIC, "orders", ("retention.ms", SET, "5")), validate_only=True) == [0]
        assert plane.quorum.end == end

    walk(steps)


def test_log_levels_change_here_and_now(quiet_logger: logging.Logger) -> None:
    async def steps(plane: ControlPlane) -> None:
        name = quiet_logger.name
        assert await codes(plane, of(LOGGER, "1", (name, SET, "WARN"))) == [0]
        assert quiet_logger.level == logging.WARNING
        assert await codes(plane, of(LOGGER, "1", (name, SET, "DEBUG")), validate_only=True) == [0]
        assert quiet_logger.level == logging.WARNING
        assert await codes(plane, of(LOGGER, "1", (name, DELETE, None))) == [0]
        assert quiet_logger.level == logging.NOTSET
        assert plane.image.configs.keys() == {(BROKER, "")}

    walk(steps)


def test_log_levels_that_cannot_be_are_refused(quiet_logger: logging.Logger) -> None:
    async def steps(plane: ControlPlane) -> None:
        name = quiet_logger.name
        assert await codes(plane, of(LOGGER, "1", ("nobody", SET, "INFO"))) == [INVALID_CONFIG.code]
        assert await codes(plane, of(LOGGER, "1", (name, SET, "LOUD"))) == [INVALID_CONFIG.code]
        assert await codes(plane, of(LOGGER, "1", ("root", DELETE, None))) == [INVALID_REQUEST.code]
        assert await codes(plane, of(LOGGER, "1", (name, APPEND, "INFO"))) == [INVALID_REQUEST.code]
        assert await codes(plane, of(LOGGER, "2", (name, SET, "INFO"))) == [INVALID_REQUEST.code]

    walk(steps)


def test_brokers_take_a_right_on_the_cluster() -> None:
    no = Recording(Asked(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, "kafka-cluster"))

    async def steps(plane: ControlPlane) -> None:
        denied = CLUSTER_AUTHORIZATION_FAILED.code
        changes = (of(BROKER, "1", ("log.retention.ms", SET, "5")), of(LOGGER, "1", ("root", SET, "INFO")))
        assert await codes(plane, *changes) == [denied, denied]

    walk(steps, authorizer=no)
