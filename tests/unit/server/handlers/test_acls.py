"""Access rules while there is no authorizer: words and numbers are those of Apache Kafka 4.3."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from penstock.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from penstock.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from penstock.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from penstock.server.authorize import Asked, Recording
from penstock.server.context import Disconnect, Operation, ResourceType
from penstock.server.handlers import create_acls, delete_acls, describe_acls
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
