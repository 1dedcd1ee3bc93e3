from __future__ import annotations

from typing import Any

import pytest

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import describe_configs
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
FROM_TOPIC, FROM_DEFAULT_BROKER, FROM_FILE, FROM_DEFAULT, FROM_LOGGER = 1, 3, 4, 5, 6


def of(*resources: tuple[int, str], keys: list[str] | None = None, **said: bool) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            )
            for kind, name in resources
        ],
        **said,
    )


def entries(result: Any) -> dict[str, Any]:
    return {entry.name: entry for entry in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_tells_a_topics_values_and_where_they_come_from(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders", retention_ms="60000")
        reply = await plane.ask(describe_configs, of((TOPIC, "orders")), version)
        found = entries(reply.results[0])
        assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("60000", FROM_TOPIC)
        assert (found["segment.bytes"].value, found["segment.bytes"].config_source) == ("1048576", FROM_FILE)
        assert (found["min.insync.replicas"].config_source) == FROM_DEFAULT_BROKER
        assert found["cleanup.policy"].config_source == FROM_DEFAULT
        assert not any(entry.synonyms or entry.documentation for entry in found.values())
        if version >= 3:
            assert found["retention.ms"].config_type == 5

    walk(steps, properties={"log.segment.bytes": "1048576"})


def test_synonyms_name_every_layer_and_documentation_comes_on_request() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders", segment_bytes="2000000")
        request = of((TOPIC, "orders"), keys=["segment.bytes"], include_synonyms=True, include_documentation=True)
        (entry,) = (await plane.ask(describe_configs, request, 4)).results[0].configs
        assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
            ("segment.bytes", "2000000", FROM_TOPIC),
            ("log.segment.bytes", "1048576", FROM_FILE),
            ("log.segment.bytes", "1073741824", FROM_DEFAULT),
        ]
        assert entry.documentation

    walk(steps, properties={"log.segment.bytes": "1048576"})


def test_keys_choose_and_no_keys_mean_all() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        chosen = await plane.ask(describe_configs, of((TOPIC, "orders"), keys=["retention.ms", "nonsense"]), 4)
        assert list(entries(chosen.results[0])) == ["retention.ms"]
        empty = await plane.ask(describe_configs, of((TOPIC, "orders"), keys=[]), 4)
        null = await plane.ask(describe_configs, of((TOPIC, "orders")), 4)
        assert entries(empty.results[0]) == entries(null.results[0])

    walk(steps)


def test_a_broker_answers_for_itself_and_for_the_default_of_all() -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(describe_configs, of((BROKER, "1"), (BROKER, ""), (BROKER, "2"), (BROKER, "x")), 4)
        own, default, other, nonsense = reply.results
        assert entries(own)["node.id"].read_only
        assert entries(own)["log.segment.bytes"].read_only is False
        assert [entry.name for entry in default.configs] == ["min.insync.replicas"]
        assert (other.error_code, nonsense.error_code) == (INVALID_REQUEST.code, INVALID_REQUEST.code)

    walk(steps)


def test_secrets_have_no_value() -> None:
    async def steps(plane: ControlPlane) -> None:
        request = of((BROKER, "1"), keys=["ssl.key.password"], include_synonyms=True)
        (entry,) = (await plane.ask(describe_configs, request, 4)).results[0].configs
        assert (entry.value, entry.is_sensitive) == (None, True)
        assert all(each.value is None for each in entry.synonyms)

    walk(steps, properties={"ssl.key.password": "hush"})


def test_loggers_groups_and_client_metrics_are_described() -> None:
    async def steps(plane: ControlPlane) -> None:
        request = of((LOGGER, "1"), (GROUP, "g"), (CLIENT_METRICS, "all"))
        loggers, group, metrics = (await plane.ask(describe_configs, request, 4)).results
        assert "root" in entries(loggers)
        assert {entry.config_source for entry in loggers.configs} == {FROM_LOGGER}
        assert entries(group)["consumer.session.timeout.ms"].value == "45000"
        assert entries(metrics)["interval.ms"].value == "300000"
        nameless = of((LOGGER, ""), (GROUP, ""), (CLIENT_METRICS, ""), (LOGGER, "2"))
        reply = await plane.ask(describe_configs, nameless, 4)
        assert [each.error_code for each in reply.results] == [INVALID_REQUEST.code] * 4

    walk(steps)


def test_unknown_topics_and_kinds_are_refused() -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(describe_configs, of((TOPIC, "none"), (TOPIC, "a b")), 4)
        codes = [UNKNOWN_TOPIC_OR_PARTITION.code, INVALID_TOPIC_EXCEPTION.code]
        assert [each.error_code for each in reply.results] == codes
        odd = await plane.ask(describe_configs, of((BROKER, "1"), (99, "x")), 4)
        assert [each.error_code for each in odd.results] == [INVALID_REQUEST.code] * 2

    walk(steps)


def test_each_kind_takes_its_own_right() -> None:
    no = Recording(
        Asked(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "orders"),
        Asked(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, "kafka-cluster"),
    )

    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        reply = await plane.ask(describe_configs, of((TOPIC, "orders"), (BROKER, "1"), (LOGGER, "1"), (GROUP, "g")), 4)
        denied = CLUSTER_AUTHORIZATION_FAILED.code
        assert [each.error_code for each in reply.results] == [TOPIC_AUTHORIZATION_FAILED.code, denied, denied, 0]

    walk(steps, authorizer=no)
