from __future__ import annotations

import pytest

from penstock.model.errors import INVALID_REQUEST, MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE
from penstock.protocol.messages.describe_cluster import DescribeClusterRequest
from penstock.server.doors import OPERATIONS_NOT_ASKED, ListenerInfo, Operation, ResourceType
from penstock.server.handlers import describe_cluster
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import WILDCARD, ControlPlane, walk


@pytest.mark.parametrize("version", range(3))
def test_every_version_tells_the_brokers_and_a_controller(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(describe_cluster, DescribeClusterRequest(), version)
        assert (reply.error_code, reply.cluster_id, reply.controller_id) == (0, plane.cluster_id, 1)
        told = [(each.broker_id, each.host, each.port, each.rack) for each in reply.brokers]
        assert told == [(1, "127.0.0.1", 9092, None)]
        assert reply.cluster_authorized_operations == OPERATIONS_NOT_ASKED

    walk(steps)


def test_a_wildcard_listener_answers_with_the_dialled_address() -> None:
    async def steps(plane: ControlPlane) -> None:
        said = {"listener": WILDCARD, "dialled": ("192.0.2.7", 19092)}
        reply = await plane.ask(describe_cluster, DescribeClusterRequest(), 2, **said)
        assert [(each.host, each.port) for each in reply.brokers] == [("192.0.2.7", 19092)]

    walk(steps)


def test_controllers_are_asked_for_elsewhere() -> None:
    async def steps(plane: ControlPlane) -> None:
        for kind, error in ((2, MISMATCHED_ENDPOINT_TYPE), (7, UNSUPPORTED_ENDPOINT_TYPE)):
            reply = await plane.ask(describe_cluster, DescribeClusterRequest(endpoint_type=kind), 1)
            assert (reply.error_code, reply.brokers) == (error.code, [])

    walk(steps)


CONTROLLERS = ListenerInfo("CONTROLLER", "127.0.0.1", 9093, for_controllers=True)


def test_a_controllers_listener_tells_the_controllers() -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(describe_cluster, DescribeClusterRequest(endpoint_type=2), 1, listener=CONTROLLERS)
        assert (reply.error_code, reply.endpoint_type, reply.controller_id) == (0, 2, 1)
        assert [(each.broker_id, each.host, each.port) for each in reply.brokers] == [(1, "127.0.0.1", 9093)]
        for kind, error in ((1, MISMATCHED_ENDPOINT_TYPE), (7, UNSUPPORTED_ENDPOINT_TYPE)):
            request = DescribeClusterRequest(endpoint_type=kind)
            reply = await plane.ask(describe_cluster, request, 1, listener=CONTROLLERS)
            assert (reply.error_code, reply.brokers) == (error.code, [])
        # The first version has no kinds, and no code for the wrong one.
        reply = await plane.ask(describe_cluster, DescribeClusterRequest(), 0, listener=CONTROLLERS)
        assert (reply.error_code, reply.brokers) == (INVALID_REQUEST.code, [])

    walk(steps)


def test_fenced_brokers_are_shown_on_request() -> None:
    async def steps(plane: ControlPlane) -> None:
        plane.clock.advance(9_001)
        plane.controller._tick()
        await plane.metadata.published(plane.quorum.end)
        assert (await plane.ask(describe_cluster, DescribeClusterRequest(), 2)).brokers == []
        reply = await plane.ask(describe_cluster, DescribeClusterRequest(include_fenced_brokers=True), 2)
        assert [(each.broker_id, each.is_fenced) for each in reply.brokers] == [(1, True)]
        assert reply.controller_id == -1
        await plane.lifecycle._beat()

    walk(steps)


def test_authorized_operations_are_a_secret_to_those_who_may_not_describe() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)

    async def allowed(plane: ControlPlane) -> None:
        assert (await plane.ask(describe_cluster, request, 2)).cluster_authorized_operations == 8096

    async def denied(plane: ControlPlane) -> None:
        assert (await plane.ask(describe_cluster, request, 2)).cluster_authorized_operations == 0

    walk(allowed)
    walk(denied, authorizer=Recording(Asked(Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")))
