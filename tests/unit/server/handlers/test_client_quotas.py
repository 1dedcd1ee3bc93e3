"""Client quotas: set, told and removed; words and numbers are those of Apache Kafka 4.3."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, UNSUPPORTED_VERSION
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from penstock.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import alter_client_quotas, describe_client_quotas
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

Entry = AlterClientQuotasRequest.EntryData
Part = AlterClientQuotasRequest.EntityData
Op = AlterClientQuotasRequest.OpData
Component = DescribeClientQuotasRequest.ComponentData

RATE = "producer_byte_rate"
VERSIONS = pytest.mark.parametrize("version", [0, 1])


def entry(rate: float | None, **entity: str | None) -> Entry:
    parts = [Part(entity_type=type.replace("_", "-"), entity_name=name) for type, name in entity.items()]
    return Entry(entity=parts, ops=[Op(key=RATE, value=rate or 0.0, remove=rate is None)])


async def alter(plane: ControlPlane, *entries: Entry, version: int = 1, only: bool = False) -> list[int]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=only)
    reply = await plane.ask(alter_client_quotas, request, version)
    assert [[part.entity_type for part in each.entity] for each in reply.entries] == [
        sorted(part.entity_type for part in each.entity) for each in entries
    ]
    return [each.error_code for each in reply.entries]


async def describe(plane: ControlPlane, *components: Component, version: int = 1, strict: bool = False) -> Any:
    request = DescribeClientQuotasRequest(components=list(components), strict=strict)
    return await plane.ask(describe_client_quotas, request, version)


def told(reply: Any) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    return {
        tuple((part.entity_type, part.entity_name) for part in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in reply.entries
    }


@VERSIONS
def test_limits_are_set_told_and_removed(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        changes = (entry(1_024, user="alice"), entry(2_048, user=None), entry(512, client_id="c", user="alice"))
        assert await alter(plane, *changes, version=version) == [0, 0, 0]
        alice, both = (("user", "alice"),), (("client-id", "c"), ("user", "alice"))
        everything = told(await describe(plane, version=version))
        assert everything == {alice: {RATE: 1_024.0}, (("user", None),): {RATE: 2_048.0}, both: {RATE: 512.0}}
        of_alice = Component(entity_type="user", match_type=0, match="alice")
        assert set(told(await describe(plane, of_alice, version=version))) == {alice, both}
        assert set(told(await describe(plane, of_alice, version=version, strict=True))) == {alice}
        assert await alter(plane, entry(None, user="alice"), version=version) == [0]
        assert alice not in plane.image.quotas

    walk(steps)


def test_a_check_alone_changes_nothing() -> None:
    async def steps(plane: ControlPlane) -> None:
        assert await alter(plane, entry(1_024, user="alice"), entry(-1, user="bob"), only=True) == [0, 42]
        assert plane.image.quotas == {}

    walk(steps)


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([Component(entity_type="group", match_type=0, match="x")], UNSUPPORTED_VERSION),
        ([Component(entity_type="user", match_type=0, match=None)], INVALID_REQUEST),
        ([Component(entity_type="user", match_type=2, match=None)] * 2, INVALID_REQUEST),
    ],
)
@VERSIONS
def test_a_filter_that_makes_no_sense_is_refused_as_a_whole(version: int, components: Any, error: Any) -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await describe(plane, *components, version=version)
        assert (reply.error_code, reply.entries) == (error.code, None)

    walk(steps)


@VERSIONS
def test_who_may_not_look_or_alter_is_refused(version: int) -> None:
    asked = [Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS]
    no = Recording(*(Asked(each, ResourceType.CLUSTER, "kafka-cluster") for each in asked))
    denied = CLUSTER_AUTHORIZATION_FAILED.code

    async def steps(plane: ControlPlane) -> None:
        assert await alter(plane, entry(1, user="a"), entry(1, user="b"), version=version) == [denied] * 2
        reply = await describe(plane, version=version)
        assert (reply.error_code, reply.entries) == (denied, None)
        assert plane.image.quotas == {}

    walk(steps, authorizer=no)
