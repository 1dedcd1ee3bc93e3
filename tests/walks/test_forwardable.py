"""What a broker hands to the controller must fit into an envelope: a request that its client's version can say."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.model.errors import NOT_CONTROLLER, Refused
from penstock.model.ids import Uuid
from penstock.protocol.codec import decode, encode
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.registry import APIS, Api
from penstock.security.authorizer import Authorizer as Rules
from penstock.server.doors import Context, ListenerInfo, Principal
from penstock.server.handlers import delete_topics
from penstock.server.handlers.envelope import FORWARDABLE
from penstock.server.reception.authorize import AclAuthorizer
from tests.walks.control_plane import ControlPlane, walk
from tests.walks.every_api import MAKERS, Target, request_of

BY_THE_QUORUM = {"DescribeQuorum", "AddRaftVoter", "RemoveRaftVoter"}
CASES = [
    pytest.param(api, version, id=f"{api.name} v{version}")
    for api in APIS.values()
    if api.name in FORWARDABLE - BY_THE_QUORUM and api.name in MAKERS
    for version in range(api.min, api.max + 1)
]


ALICE = Principal("User", "alice")
LOGGED_IN = ListenerInfo("CLIENTS", "127.0.0.1", 9092, "SASL_SSL")


class PostOffice:
    """Stands where the controller's door is; keeps what goes through it as it would be sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def submit(self, request: Any, ctx: Context) -> Any:
        self.sent.append(decode(request.__class__, ctx.api_version, encode(request, ctx.api_version))[0])
        raise Refused(NOT_CONTROLLER, "nobody is home")


@pytest.mark.parametrize(("api", "version"), CASES)
def test_what_is_forwarded_can_be_said_in_the_clients_version(api: Api, version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        topic_id = await plane.create("orders")
        office: Any = PostOffice()
        authorizer = AclAuthorizer(Rules([str(ALICE)]), lambda: 0.0)
        services = replace(plane.services(), controller=office, authorizer=authorizer)
        handle = import_module(f"penstock.server.handlers.{api.module}").handle
        ctx = Context(services, api.key, version, principal=ALICE, listener=LOGGED_IN)
        await handle(ctx, request_of(api, version, Target("orders", topic_id, "new")))
        assert len(office.sent) == 1

    walk(steps)


def test_an_id_that_a_broker_does_not_know_yet_is_the_controllers_to_judge() -> None:
    async def steps(plane: ControlPlane) -> None:
        office, elsewhere = PostOffice(), SimpleNamespace(leading=False)
        services = replace(plane.services(), controller=office, quorum=elsewhere)  # type: ignore[arg-type]
        state = DeleteTopicsRequest.DeleteTopicState(topic_id=Uuid(bytes(range(16))))
        await delete_topics.handle(Context(services, 20, 6), DeleteTopicsRequest(topics=[state]))
        assert [request.topics for request in office.sent] == [[state]]

    walk(steps)
