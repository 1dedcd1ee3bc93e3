"""ACLs with and without an authorizer: words and numbers are those of Apache Kafka 4.3."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from penstock.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from penstock.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from penstock.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from penstock.security.authorizer import Authorizer as Rules
from penstock.server.doors import Disconnect, Operation, Principal, ResourceType
from penstock.server.handlers import create_acls, delete_acls, describe_acls
from penstock.server.reception.authorize import AclAuthorizer, Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

DISABLED = SECURITY_DISABLED.code
RULE = CreateAclsRequest.AclCreation(resource_type=2, resource_name="t", operation=3, permission_type=3)
FILTER = DeleteAclsRequest.DeleteAclsFilter(resource_type_filter=2, operation=3, permission_type=3)
CASES: list[tuple[ModuleType, Any, Any]] = [
    (
        describe_acls,
        DescribeAclsRequest(resource_type_filter=2, operation=3, permission_type=3),
        DescribeAclsResponse(error_code=DISABLED, error_message="No Authorizer is configured on the broker"),
    ),
    (
        create_acls,
        CreateAclsRequest(creations=[RULE, RULE]),
        CreateAclsResponse(
            results=[
                CreateAclsResponse.AclCreationResult(error_code=DISABLED, error_message="No Authorizer is configured.")
            ]
            * 2
        ),
    ),
    (
        delete_acls,
        DeleteAclsRequest(filters=[FILTER]),
        DeleteAclsResponse(
            filter_results=[
                DeleteAclsResponse.DeleteAclsFilterResult(
                    error_code=DISABLED, error_message="No Authorizer is configured."
                )
            ]
        ),
    ),
]


@pytest.mark.parametrize(("handler", "request_", "reply"), CASES, ids=["describe", "create", "delete"])
def test_rules_are_refused_as_by_a_broker_without_an_authorizer(handler: Any, request_: Any, reply: Any) -> None:
    async def steps(plane: ControlPlane) -> None:
        assert await plane.ask(handler, request_, 3) == reply

    walk(steps)


@pytest.mark.parametrize(
    ("handler", "request_"),
    [
        (describe_acls, DescribeAclsRequest(resource_type_filter=2, operation=0, permission_type=3)),
        (create_acls, CreateAclsRequest(creations=[RULE, CreateAclsRequest.AclCreation(resource_type=2)])),
        (delete_acls, DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter()])),
    ],
)
def test_an_unknown_element_costs_its_connection(handler: Any, request_: Any) -> None:
    async def steps(plane: ControlPlane) -> None:
        with pytest.raises(Disconnect, match="unknown elements"):
            await plane.ask(handler, request_, 3)

    walk(steps)


def test_who_may_not_look_or_alter_is_told_only_that() -> None:
    no = Recording(
        *(Asked(each, ResourceType.CLUSTER, "kafka-cluster") for each in (Operation.DESCRIBE, Operation.ALTER))
    )

    async def steps(plane: ControlPlane) -> None:
        replies = [await plane.ask(handler, request, 3) for handler, request, _ in CASES]
        told = [replies[0], *replies[1].results, *replies[2].filter_results]
        assert {each.error_code for each in told} == {CLUSTER_AUTHORIZATION_FAILED.code}

    walk(steps, authorizer=no)


# With an authorizer

ADMIN, ALICE = Principal("User", "admin"), Principal("User", "alice")


def by_acls(plane: ControlPlane) -> AclAuthorizer:
    """As a node has it: ACLs of the published image decide, and only an admin may change them at first."""
    authorizer = AclAuthorizer(Rules([str(ADMIN)]), plane.clock.monotonic_ms)
    authorizer.load(plane.image)
    plane.metadata.on_publish(authorizer.follow)
    plane.authorizer = authorizer
    return authorizer


def creation(name: str = "orders", **said: Any) -> CreateAclsRequest.AclCreation:
    given = {"resource_type": 2, "principal": "User:alice", "host": "*", "operation": 4, "permission_type": 3}
    return CreateAclsRequest.AclCreation(resource_name=name, **{**given, **said})


def everything(**said: Any) -> dict[str, Any]:
    """A filter that leaves all open but what is said."""
    anything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    return {**anything, "resource_name_filter": None, "principal_filter": None, "host_filter": None, **said}


def told(reply: Any) -> list[tuple[int, str, int, str, str, int, int]]:
    return [
        (
            at.resource_type,
            at.resource_name,
            at.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for at in reply.resources
        for acl in at.acls
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_made_told_obeyed_and_removed(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        authorizer = by_acls(plane)
        question = (ALICE, "10.0.0.1", Operation.WRITE, ResourceType.TOPIC, "orders")
        assert not authorizer.allows(*question)
        request = CreateAclsRequest(creations=[creation(), creation("or", resource_pattern_type=4, operation=8)])
        for _ in range(2):  # what is there already is no mistake
            reply = await plane.ask(create_acls, request, version, principal=ADMIN)
            assert [(each.error_code, each.error_message) for each in reply.results] == [(0, None), (0, None)]
        assert authorizer.allows(*question)
        shown = await plane.ask(describe_acls, DescribeAclsRequest(**everything()), version, principal=ADMIN)
        assert told(shown) == [
            (2, "or", 4, "User:alice", "*", 8, 3),
            (2, "orders", 3, "User:alice", "*", 4, 3),
        ]
        matching = DeleteAclsRequest.DeleteAclsFilter(**everything(resource_name_filter="orders"))
        gone = await plane.ask(delete_acls, DeleteAclsRequest(filters=[matching]), version, principal=ADMIN)
        (result,) = gone.filter_results
        assert [acl.resource_name for acl in result.matching_acls] == ["orders"]
        assert not authorizer.allows(*question)
        assert len(plane.image.acls) == 1

    walk(steps)


def test_what_is_wrong_with_one_acl_costs_that_one_alone() -> None:
    async def steps(plane: ControlPlane) -> None:
        by_acls(plane)
        request = CreateAclsRequest(creations=[creation(""), creation(), creation(resource_type=4)])
        reply = await plane.ask(create_acls, request, 3, principal=ADMIN)
        assert [each.error_code for each in reply.results] == [42, 0, 42]
        assert [record.resource_name for record in plane.image.acls.values()] == ["orders"]

    walk(steps)


def test_a_user_without_rights_neither_sees_nor_changes_acls() -> None:
    async def steps(plane: ControlPlane) -> None:
        by_acls(plane)
        await plane.ask(create_acls, CreateAclsRequest(creations=[creation()]), 3, principal=ADMIN)
        denied = CLUSTER_AUTHORIZATION_FAILED.code
        made = await plane.ask(create_acls, CreateAclsRequest(creations=[creation("x")] * 2), 3, principal=ALICE)
        assert [each.error_code for each in made.results] == [denied] * 2
        every = DeleteAclsRequest.DeleteAclsFilter(**everything())
        gone = await plane.ask(delete_acls, DeleteAclsRequest(filters=[every]), 3, principal=ALICE)
        assert [(each.error_code, each.matching_acls) for each in gone.filter_results] == [(denied, [])]
        shown = await plane.ask(describe_acls, DescribeAclsRequest(**everything()), 3, principal=ALICE)
        assert (shown.error_code, shown.resources) == (denied, [])
        assert len(plane.image.acls) == 1

    walk(steps)


def test_acls_survive_a_restart() -> None:
    async def main() -> None:
        first = await ControlPlane().start()
        by_acls(first)
        await first.ask(create_acls, CreateAclsRequest(creations=[creation()]), 3, principal=ADMIN)
        await first.stop()
        again = await ControlPlane(first.files).start()
        assert by_acls(again).allows(ALICE, "10.0.0.1", Operation.WRITE, ResourceType.TOPIC, "orders")
        # The new controller knows them too: the same one makes no second record.
        await again.ask(create_acls, CreateAclsRequest(creations=[creation()]), 3, principal=ADMIN)
        assert len(again.image.acls) == 1
        await again.stop()

    asyncio.run(main())
