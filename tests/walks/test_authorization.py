"""Whoever may do nothing is told so by every API, and nothing happens."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_SASL_STATE,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
)
from penstock.model.ids import Uuid
from penstock.protocol.registry import Api
from penstock.server.doors import Operation, Principal, ResourceType
from penstock.server.reception.authorize import Asked
from penstock.server.reception.dispatch import SERVED
from tests.walks.data_plane import BY_ID, Client, Machine, at, errors, walk
from tests.walks.every_api import LOGINS, MAKERS, TOKENS, Target, codes, request_of, served

REFUSALS = {
    error.code
    for error in (
        CLUSTER_AUTHORIZATION_FAILED,
        GROUP_AUTHORIZATION_FAILED,
        TOPIC_AUTHORIZATION_FAILED,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )
}
EVERYBODY = {"ApiVersions", "DescribeCluster"}
"""Who may connect may see these; of the cluster only what one may do to it is a secret."""
SILENT = {("DescribeLogDirs", 1): "results", ("DescribeLogDirs", 2): "results"} | {
    ("ListGroups", version): "groups" for version in range(6)
}
SILENT |= {("ListTransactions", version): "transaction_states" for version in range(3)}
"""Versions whose reply has no place for the refusal, and the field that is empty in it."""


class Turnkey:
    """Allows everything until it is told to allow nothing; remembers what was asked since."""

    def __init__(self) -> None:
        self.locked = False
        self.asked: list[Asked] = []

    acls = None

    @property
    def version(self) -> int:
        return int(self.locked)

    def allows(self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        if self.locked:
            self.asked.append(Asked(operation, kind, name))
        return not self.locked

    def allows_any(self, principal: Principal, host: str, operation: Operation, kind: ResourceType) -> bool:
        return self.allows(principal, host, operation, kind, "(any)")

    def denied(self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str) -> None:
        assert self.locked


def state_of(machine: Machine) -> Any:
    """Everything that a request could have changed."""
    node = machine.node
    image = node.control.metadata.image
    topics = {topic.name: len(topic.partitions) for topic in image.topics.values()}
    logs = {hosted.name: hosted.require_log().describe() for hosted in node.partitions}
    return topics, dict(image.configs), dict(image.features), logs, node.broker.fetches.session_count


def test_there_is_a_request_for_every_api() -> None:
    assert set(MAKERS) == set(SERVED)


@pytest.mark.parametrize("api", served(), ids=lambda api: api.name)
def test_cve_2023_50976_who_may_do_nothing_is_refused_in_every_version(api: Api) -> None:
    gate = Turnkey()

    async def steps(machine: Machine, client: Client) -> None:
        topic_id = await client.create("secret")
        await client.produce("secret", b"value")
        before = state_of(machine)
        gate.locked = True
        newest = client.link.newest(api.key)
        for version in range(api.min, newest + 1):
            gate.asked.clear()
            reply = await client.ask(request_of(api, version, Target("secret", topic_id, "new")), version)
            found = codes(reply)
            if api.name == "ApiVersions":
                assert found == {0}
                continue
            if api.name in EVERYBODY:
                assert found == {0}
                continue
            if api.name in LOGINS:
                assert found == {ILLEGAL_SASL_STATE.code}
                continue
            if api.name in TOKENS:
                assert found == {DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.code}
                continue
            if api.name != "ListTransactions":  # which asks about each that there is
                assert gate.asked, f"{api.name} v{version} asked nobody"
            if (api.name, version) in SILENT:
                assert (found, getattr(reply, SILENT[api.name, version])) == ({0}, [])
            else:
                assert found & REFUSALS, f"{api.name} v{version} answered {sorted(found)}"
                assert found <= REFUSALS | {0}
            assert b"value" not in repr(reply).encode()
        assert state_of(machine) == before

    walk(steps, authorizer=gate)


def test_all_topics_are_those_one_may_see() -> None:
    gate = Turnkey()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("secret")
        assert await client.topics() == {"secret"}
        gate.locked = True
        assert await client.topics() == set()

    walk(steps, authorizer=gate)


def test_whether_a_topic_exists_is_a_secret_too() -> None:
    gate = Turnkey()

    async def steps(machine: Machine, client: Client) -> None:
        topic_id = await client.create("secret")
        client.ids["missing"] = Uuid(bytes(range(16)))
        gate.locked = True
        for topic in ("secret", "missing"):
            assert (await client.produce(topic, b"x")).error_code == TOPIC_AUTHORIZATION_FAILED.code
            assert errors(await client.fetch(at(topic, 0))) == [TOPIC_AUTHORIZATION_FAILED.code]
        # An id is as good as a key: who has one may know that it fits.
        known, unknown = at(topic_id, 0), at(client.ids["missing"], 0)
        assert errors(await client.fetch(known, version=BY_ID)) == [TOPIC_AUTHORIZATION_FAILED.code]
        assert errors(await client.fetch(unknown, version=BY_ID)) == [UNKNOWN_TOPIC_ID.code]

    walk(steps, authorizer=gate)


def test_a_session_is_asked_for_at_every_fetch() -> None:
    gate = Turnkey()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("secret")
        reply = await client.fetch(at("secret", 0), session=(0, 0))
        await client.produce("secret", b"x")
        gate.locked = True
        again = await client.fetch(session=(reply.session_id, 1))
        assert errors(again) == [TOPIC_AUTHORIZATION_FAILED.code]

    walk(steps, authorizer=gate)
