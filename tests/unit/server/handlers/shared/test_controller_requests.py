"""Handlers that only let the controller decide: who may ask, and what becomes of a refusal."""

from __future__ import annotations

import asyncio
import dataclasses
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER, Refused
from penstock.protocol.codec import decode, encode
from penstock.protocol.registry import APIS, Api
from penstock.server.doors import Context, Operation, ResourceType

NEEDS = {
    "BrokerRegistration": Operation.CLUSTER_ACTION,
    "BrokerHeartbeat": Operation.CLUSTER_ACTION,
    "ControllerRegistration": Operation.CLUSTER_ACTION,
    "AlterPartition": Operation.CLUSTER_ACTION,
    "AssignReplicasToDirs": Operation.CLUSTER_ACTION,
    "AllocateProducerIds": Operation.CLUSTER_ACTION,
    "UnregisterBroker": Operation.ALTER,
    "ElectLeaders": Operation.ALTER,
    "AlterPartitionReassignments": Operation.ALTER,
    "ListPartitionReassignments": Operation.DESCRIBE,
}
EVERY_VERSION = [
    pytest.param(api, version, id=f"{api.name} v{version}")
    for api in APIS.values()
    if api.name in NEEDS
    for version in range(api.min, api.max + 1)
]


class Office:
    """An authorizer and a controller that remember what they were asked."""

    def __init__(self, answer: Any, *, allows: bool = True) -> None:
        self.answer, self.allowed = answer, allows
        self.asked: list[tuple[Operation, ResourceType]] = []
        self.submitted: list[Any] = []

    def allows(self, _principal: Any, _host: str, operation: Operation, kind: ResourceType, _name: str) -> bool:
        self.asked.append((operation, kind))
        return self.allowed

    def denied(self, *_question: Any) -> None:
        assert not self.allowed

    async def submit(self, request: Any, _ctx: Context) -> Any:
        self.submitted.append(request)
        if isinstance(self.answer, Refused):
            raise self.answer
        return self.answer


def handled(api: Api, version: int, office: Office, request: Any) -> Any:
    """The reply, as the asker reads it."""
    services: Any = SimpleNamespace(authorizer=office, controller=office, audit=None)
    handle = import_module(f"penstock.server.handlers.{api.module}").handle
    reply = asyncio.run(handle(Context(services, api.key, version), request))
    return decode(api.response(), version, encode(reply, version))[0]


def request_of(api: Api) -> Any:
    made = api.request()
    if api.name == "ElectLeaders":
        return made(topic_partitions=[made.TopicPartitions(topic="t", partitions=[0, 3])])
    return made()


def codes(message: Any) -> set[int]:
    """Every error code in a reply, however deep."""
    found = set[int]()
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name == "error_code":
            found.add(value)
        for inner in value if isinstance(value, list) else [value]:
            if dataclasses.is_dataclass(inner):
                found |= codes(inner)
    return found - {0}


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_the_controllers_reply_goes_to_the_asker(api: Api, version: int) -> None:
    office, request = Office(api.response()()), request_of(api)
    assert codes(handled(api, version, office, request)) == set()
    assert office.submitted == [request]
    assert office.asked == [(NEEDS[api.name], ResourceType.CLUSTER)]


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_who_may_not_ask_is_told_so_and_nothing_is_decided(api: Api, version: int) -> None:
    office = Office(None, allows=False)
    assert codes(handled(api, version, office, request_of(api))) == {CLUSTER_AUTHORIZATION_FAILED.code}
    assert office.submitted == []


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_another_controller_says_that_it_is_not_the_one(api: Api, version: int) -> None:
    office = Office(Refused(NOT_CONTROLLER, "this node is not the active controller"))
    assert codes(handled(api, version, office, request_of(api))) == {NOT_CONTROLLER.code}
