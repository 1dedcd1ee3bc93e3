from __future__ import annotations

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from penstock.model.ids import TRANSACTIONS_TOPIC, Epoch, Uuid
from penstock.protocol.disk.metadata_brokers import RegisterBrokerRecord
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import find_coordinator
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

GROUP, TRANSACTION, SHARE = 0, 1, 2
SHARE_KEY = "g:kEwIbGAlTduXbFWo3HAUYQ:0"


def of(version: int, *keys: str, kind: int = GROUP) -> FindCoordinatorRequest:
    if version < 4:
        return FindCoordinatorRequest(key=keys[0], key_type=kind)
    return FindCoordinatorRequest(coordinator_keys=list(keys), key_type=kind)


async def error_of(plane: ControlPlane, version: int, key: str, kind: int) -> int:
    reply = await plane.ask(find_coordinator, of(version, key, kind=kind), version)
    return int(reply.error_code if version < 4 else reply.coordinators[0].error_code)


def test_kinds_of_keys_come_with_their_versions() -> None:
    async def steps(plane: ControlPlane) -> None:
        assert await error_of(plane, 6, SHARE_KEY, SHARE) == COORDINATOR_NOT_AVAILABLE.code
        assert await error_of(plane, 6, "g", SHARE) == INVALID_REQUEST.code
        assert await error_of(plane, 5, SHARE_KEY, SHARE) == INVALID_REQUEST.code
        assert await error_of(plane, 3, "g", 7) == INVALID_REQUEST.code

    walk(steps)


def test_each_kind_takes_its_own_right() -> None:
    no = Recording(
        Asked(Operation.DESCRIBE, ResourceType.GROUP, "g"),
        Asked(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "t"),
        Asked(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"),
    )

    async def steps(plane: ControlPlane) -> None:
        assert await error_of(plane, 2, "g", GROUP) == GROUP_AUTHORIZATION_FAILED.code
        assert await error_of(plane, 6, "t", TRANSACTION) == TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code
        assert await error_of(plane, 6, SHARE_KEY, SHARE) == CLUSTER_AUTHORIZATION_FAILED.code

    walk(steps, authorizer=no)


def test_transactional_ids_have_no_coordinator_while_a_broker_does_not_know_them() -> None:
    async def steps(plane: ControlPlane) -> None:
        record = RegisterBrokerRecord(broker_id=5, incarnation_id=Uuid(bytes(16)), broker_epoch=1)
        plane.image.apply(record, plane.image.offset, Epoch(1))
        found = (await plane.ask(find_coordinator, of(6, "t", kind=TRANSACTION), 6)).coordinators[0]
        assert (found.error_code, found.node_id) == (COORDINATOR_NOT_AVAILABLE.code, -1)
        assert found.error_message.startswith("Transactions wait for broker 5,")
        assert plane.image.topic(TRANSACTIONS_TOPIC) is None, "it is made for nobody"

    walk(steps)
