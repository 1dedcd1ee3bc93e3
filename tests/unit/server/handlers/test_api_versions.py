from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.model.errors import INVALID_REQUEST
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.server.handlers import api_versions
from tests.walks.control_plane import ControlPlane, walk

FINALIZED = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 1,
    "metadata.version": 30,
    "transaction.version": 2,
}


def request(name: str = "a-client", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", range(5))
def test_every_version_tells_exactly_what_is_served(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(api_versions, request(), version)
        assert reply.error_code == 0
        told = [(key.api_key, key.min_version, key.max_version) for key in reply.api_keys]
        assert told == [(0, 0, 13), (3, 0, 13), (18, 0, 4)]

    walk(steps)


def test_clients_below_version_4_are_not_told_of_features_that_start_at_0() -> None:
    async def steps(plane: ControlPlane) -> None:
        old = await plane.ask(api_versions, request(), 3)
        new = await plane.ask(api_versions, request(), 4)
        assert [feature.name for feature in old.supported_features] == ["metadata.version"]
        assert {feature.name for feature in new.supported_features} == FINALIZED.keys()
        for reply in (old, new):
            levels = {each.name: each.max_version_level for each in reply.finalized_features}
            assert levels == FINALIZED
            assert reply.finalized_features_epoch == plane.image.offset

    walk(steps)


@pytest.mark.parametrize("name", ["", "-client", "client-", "a client", "clïent"])
def test_a_client_with_a_bad_name_is_refused(name: str) -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(api_versions, request(name), 3)
        assert (reply.error_code, reply.api_keys) == (INVALID_REQUEST.code, [])
        assert (await plane.ask(api_versions, request(version=name), 4)).error_code == INVALID_REQUEST.code

    walk(steps)


def test_of_long_names_little_is_remembered() -> None:
    """Strangers say them too, and thousands of connections may stand."""

    async def steps(plane: ControlPlane) -> None:
        connection = SimpleNamespace(software=("", ""))
        reply = await plane.ask(api_versions, request("n" * 30_000, "1" * 30_000), 3, connection=connection)
        assert (reply.error_code, connection.software) == (0, ("n" * 128, "1" * 128))

    walk(steps)


def test_the_connection_remembers_the_software() -> None:
    async def steps(plane: ControlPlane) -> None:
        connection = SimpleNamespace(software=("", ""))
        await plane.ask(api_versions, request("librdkafka", "2.15.0"), 3, connection=connection)
        assert connection.software == ("librdkafka", "2.15.0")

    walk(steps)
