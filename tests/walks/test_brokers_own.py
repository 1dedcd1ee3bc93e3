"""What only brokers may say, said by a user who may do everything to topics and groups and nothing to the cluster.

Refused with Kafka's code, and nothing is changed by it. Each is also said by a node, which is heard: so the request is
one that would do something.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from penstock.model.errors import (
    INVALID_RECORD,
    INVALID_TOPIC_EXCEPTION,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from penstock.model.ids import METADATA_TOPIC, OFFSETS_TOPIC, Uuid, uuid_text
from penstock.protocol.envelopes import sealed
from penstock.protocol.messages.create_acls import CreateAclsRequest
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from penstock.protocol.registry import APIS
from penstock.server.doors import ListenerInfo, Operation, Principal, ResourceType
from penstock.server.reception.dispatch import CONTROLLER_SERVED, SERVED, Dispatch
from penstock.transport.dial import Severed
from tests.patience import until
from tests.walks.control_plane import ControlPlane
from tests.walks.control_plane import walk as control_walk
from tests.walks.data_plane import BY_NAME, Client, Machine, at, batch_of, errors, records_in, walk
from tests.walks.every_api import codes
from tests.walks.test_authorization import state_of
from tests.walks.test_denied import api_of

TOPIC_DENIED, CLUSTER_DENIED = 29, 31
CONTROLLERS = ListenerInfo("CONTROLLER", "127.0.0.1", 9093, for_controllers=True)
ADMIN = Principal("User", "admin")
STRANGE = Uuid(b"nobody's place..")


class AllButTheCluster:
    """Everything may be done, but to the cluster only what a node may, and that only while `node` is set."""

    acls = None

    def __init__(self) -> None:
        self.node = True
        self.offences: list[str] = []

    @property
    def version(self) -> int:
        return int(self.node)

    def allows(self, principal: Principal, _host: str, _operation: Operation, kind: ResourceType, _name: str) -> bool:
        return self.node or kind is not ResourceType.CLUSTER or principal == ADMIN

    def allows_any(self, principal: Principal, host: str, operation: Operation, kind: ResourceType) -> bool:
        return self.allows(principal, host, operation, kind, "")

    def denied(self, _principal: Principal, _host: str, operation: Operation, kind: ResourceType, name: str) -> None:
        self.offences.append(f"{operation.name} {kind.name.lower()}:{name}")


# The metadata quorum and the controller


class Node(NamedTuple):
    """What whoever speaks as node 1 has to know."""

    plane: ControlPlane
    topic_id: Uuid
    version: int = 0
    """In which it speaks."""

    @property
    def epoch(self) -> int:
        return self.plane.lifecycle.broker_epoch

    @property
    def quorum_epoch(self) -> int:
        return self.plane.quorum.leader_now.epoch


def _vote(made: Any, node: Node) -> Any:
    asked = made.PartitionData(
        replica_epoch=node.quorum_epoch + 5, replica_id=2, replica_directory_id=STRANGE, last_offset=1 << 40
    )
    return made(topics=[made.TopicData(topic_name=METADATA_TOPIC, partitions=[asked])])


def _begin_epoch(made: Any, node: Node) -> Any:
    told = made.PartitionData(leader_id=2, leader_epoch=node.quorum_epoch + 5)
    return made(topics=[made.TopicData(topic_name=METADATA_TOPIC, partitions=[told])])


def _end_epoch(made: Any, node: Node) -> Any:
    told = made.PartitionData(leader_id=1, leader_epoch=node.quorum_epoch)
    return made(topics=[made.TopicData(topic_name=METADATA_TOPIC, partitions=[told])])


def _fetch_metadata(made: Any, node: Node) -> Any:
    wanted = made.FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=node.quorum_epoch
    )
    who: dict[str, Any] = {"replica_id": 2}
    if node.version >= 15:
        who = {"replica_state": made.ReplicaState(replica_id=2, replica_epoch=-1)}
    topic = made.FetchTopic(topic=METADATA_TOPIC, topic_id=Uuid(bytes(15) + b"\1"), partitions=[wanted])
    return made(**who, topics=[topic])


def _fetch_snapshot(made: Any, node: Node) -> Any:
    wanted = made.PartitionSnapshot(
        current_leader_epoch=node.quorum_epoch, snapshot_id=made.SnapshotId(end_offset=1, epoch=1)
    )
    return made(replica_id=2, topics=[made.TopicSnapshot(name=METADATA_TOPIC, partitions=[wanted])])


def _update_voter(made: Any, node: Node) -> Any:
    return made(
        cluster_id=None,
        current_leader_epoch=node.quorum_epoch,
        voter_id=1,
        voter_directory_id=STRANGE,
        listeners=[made.Listener(name="CONTROLLER", host="evil.example", port=1)],
    )


def _register_broker(made: Any, node: Node) -> Any:
    listener = made.Listener(name="PLAINTEXT", host="evil.example", port=1)
    return made(broker_id=1, cluster_id=node.plane.cluster_id, incarnation_id=STRANGE, listeners=[listener])


def _register_controller(made: Any, node: Node) -> Any:
    listener = made.Listener(name="CONTROLLER", host="evil.example", port=1)
    return made(controller_id=1, incarnation_id=STRANGE, listeners=[listener])


def _alter_partition(made: Any, node: Node) -> Any:
    isr: dict[str, Any] = {"new_isr": [1]}
    if node.version >= 3:
        isr = {"new_isr_with_epochs": [made.BrokerState(broker_id=1, broker_epoch=node.epoch)]}
    change = made.PartitionData(leader_epoch=0, partition_epoch=0, **isr)
    return made(
        broker_id=1, broker_epoch=node.epoch, topics=[made.TopicData(topic_id=node.topic_id, partitions=[change])]
    )


def _assign_directories(made: Any, node: Node) -> Any:
    topic = made.TopicData(topic_id=node.topic_id, partitions=[made.PartitionData(partition_index=0)])
    return made(broker_id=1, broker_epoch=node.epoch, directories=[made.DirectoryData(id=STRANGE, topics=[topic])])


def _envelope(_made: Any, node: Node) -> Any:
    """An ACL for everybody, as the admin would make it."""
    everything = CreateAclsRequest.AclCreation(
        resource_type=2, resource_name="*", principal="User:*", host="*", operation=2, permission_type=3
    )
    inside = CreateAclsRequest(creations=[everything])
    return sealed(inside, 3, client_id=None, principal=ADMIN, host="127.0.0.1")


OF_CONTROLLERS: dict[str, Callable[[Any, Node], Any]] = {
    "Fetch": _fetch_metadata,
    "FetchSnapshot": _fetch_snapshot,
    "Vote": _vote,
    "BeginQuorumEpoch": _begin_epoch,
    "EndQuorumEpoch": _end_epoch,
    "UpdateRaftVoter": _update_voter,
    "BrokerRegistration": _register_broker,
    "BrokerHeartbeat": lambda made, node: made(broker_id=1, broker_epoch=node.epoch, want_fence=True),
    "ControllerRegistration": _register_controller,
    "AllocateProducerIds": lambda made, node: made(broker_id=1, broker_epoch=node.epoch),
    "AlterPartition": _alter_partition,
    "AssignReplicasToDirs": _assign_directories,
    "Envelope": _envelope,
}


def state_of_control(plane: ControlPlane) -> Any:
    return plane.image.offset, plane.quorum.leader_now, dict(plane.image.brokers), plane.quorum.leading


def heard(plane: ControlPlane, name: str, request: Any, version: int) -> Any:
    """The reply of a controller's listener, encoded and decoded on its way."""
    handler = import_module(f"penstock.server.handlers.{api_of(name).module}")
    services = dataclasses.replace(plane.services(), apis=Dispatch(CONTROLLER_SERVED))
    plane.services = lambda: services  # type: ignore[method-assign]
    return plane.ask(handler, request, version, listener=CONTROLLERS)


@pytest.mark.parametrize("name", OF_CONTROLLERS)
def test_what_nodes_tell_controllers_is_not_taken_from_a_user(name: str) -> None:
    api = api_of(name)

    async def steps(plane: ControlPlane) -> None:
        gate = AllButTheCluster()
        plane.authorizer = gate
        node = Node(plane, await plane.create("mine"))
        for version in range(12 if name == "Fetch" else api.min, api.max + 1):
            gate.node, before = False, state_of_control(plane)
            reply = await heard(
                plane, name, OF_CONTROLLERS[name](api.request(), node._replace(version=version)), version
            )
            whole = bool(getattr(reply, "error_code", 0))
            assert codes(reply) - (set() if whole else {0}) == {CLUSTER_DENIED}, f"version {version}"
            assert state_of_control(plane) == before
            assert gate.offences.pop() == "CLUSTER_ACTION cluster:kafka-cluster"
            assert gate.offences == []

    control_walk(steps)


@pytest.mark.parametrize("name", OF_CONTROLLERS)
def test_the_same_is_taken_from_a_node(name: str) -> None:
    """Or is refused for what it says, and no longer for who says it."""
    api = api_of(name)

    async def main() -> None:
        plane = await ControlPlane(authorizer=AllButTheCluster()).start()
        node = Node(plane, await plane.create("mine"), api.max)
        reply = await heard(plane, name, OF_CONTROLLERS[name](api.request(), node), api.max)
        assert CLUSTER_DENIED not in codes(reply)
        await plane.abandon()  # some of these take the lead from it

    asyncio.run(main())


@pytest.mark.parametrize("name", [name for name in OF_CONTROLLERS if name not in SERVED])
def test_where_clients_come_none_of_it_is_served(name: str) -> None:
    api = api_of(name)

    async def steps(machine: Machine, client: Client) -> None:
        before = state_of(machine)
        with pytest.raises(Severed):
            await client.ask(api.request()(), api.max)
        assert state_of(machine) == before
        await (await machine.dial()).topics()

    walk(steps)


# Followers


def as_follower(version: int, topic: str, topic_id: Uuid, **more: Any) -> FetchRequest:
    wanted = at(topic_id if version >= 13 else topic, 0, **more)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=[wanted])
    if version < 15:
        request.replica_id = 1
    else:
        request.replica_state = FetchRequest.ReplicaState(replica_id=1, replica_epoch=1)
    return request


@pytest.mark.parametrize("version", range(4, 19))
def test_a_fetch_as_a_follower_reads_nothing_and_proves_nothing(version: int) -> None:
    gate = AllButTheCluster()

    async def steps(machine: Machine, client: Client) -> None:
        topic_id = await client.create("mine")
        await client.produce("mine", b"value")
        (hosted,) = [hosted for hosted in machine.node.partitions if hosted.name.topic == "mine"]
        gate.node = False
        before, log = state_of(machine), hosted.require_log()
        more: dict[str, Any] = {"log_start_offset": 1} if version >= 5 else {}
        if version >= 17:
            more["replica_directory_id"] = STRANGE
        if version >= 18:
            more["high_watermark"] = 0
        reply = await client.ask(as_follower(version, "mine", topic_id, **more), version)
        assert errors(reply) == [TOPIC_DENIED]
        assert [records_in(data) for topic in reply.responses for data in topic.partitions] == [[]]
        assert gate.offences == ["CLUSTER_ACTION cluster:kafka-cluster"]
        assert state_of(machine) == before
        assert (log.log_start, log.committed, dict(hosted.state.followers)) == (0, 1, {})

    walk(steps, authorizer=gate)


@pytest.mark.parametrize("replica_id", [-2, -3, -(1 << 31)])
def test_odd_replica_ids_of_a_fetch_are_a_consumers(replica_id: int) -> None:
    """-3 reads a log to its end in Kafka, for moves within a node; nobody may say so over the wire."""
    gate = AllButTheCluster()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("mine")
        await client.produce("mine", b"value")
        (hosted,) = [hosted for hosted in machine.node.partitions if hosted.name.topic == "mine"]
        gate.node = False
        log = hosted.require_log()
        log.committed = 0  # as if followers had not got it yet
        request = FetchRequest(replica_id=replica_id, max_wait_ms=0, session_epoch=-1, topics=[at("mine", 0)])
        reply = await client.ask(request, BY_NAME)
        assert errors(reply) == [0]
        assert [records_in(data) for topic in reply.responses for data in topic.partitions] == [[]]
        log.committed = 1

    walk(steps, authorizer=gate)


@pytest.mark.parametrize("replica_id", [0, 1, 7])
def test_questions_about_ends_of_logs_change_nothing_whoever_asks(replica_id: int) -> None:
    """As in Kafka these take DESCRIBE of the topic, and a replica id in them is no claim to anything else."""
    gate = AllButTheCluster()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("mine")
        await client.produce("mine", b"value")
        gate.node = False
        before = state_of(machine)
        wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
        topic = ListOffsetsRequest.ListOffsetsTopic(name="mine", partitions=[wanted])
        reply = await client.ask(ListOffsetsRequest(replica_id=replica_id, topics=[topic]))
        assert [each.offset for each in reply.topics[0].partitions] == [1]
        made = OffsetForLeaderEpochRequest
        epoch = made.OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=-1)
        asked = made(replica_id=replica_id, topics=[made.OffsetForLeaderTopic(topic="mine", partitions=[epoch])])
        reply = await client.ask(asked, 4)
        assert [each.end_offset for each in reply.topics[0].partitions] == [1]
        assert state_of(machine) == before
        assert gate.offences == []

    walk(steps, authorizer=gate)


# Coordinators


def test_only_brokers_look_for_coordinators_of_share_partitions() -> None:
    gate = AllButTheCluster()

    async def steps(_machine: Machine, client: Client) -> None:
        topic_id = await client.create("mine")
        key = f"group:{uuid_text(topic_id)}:0"
        for is_node, code in ((True, 15), (False, CLUSTER_DENIED)):
            gate.node = is_node
            reply = await client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)
            assert [each.error_code for each in reply.coordinators] == [code]

    walk(steps, authorizer=gate)


MARKER = b"\0\0\0\1"  # of a transaction that committed


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(
    ("claims", "error"),
    [
        ({"control": True}, INVALID_RECORD),
        ({"control": True, "transactional": True}, TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"transactional": True}, TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
    ids=["control", "marker", "transactional"],
)
def test_what_coordinators_write_of_transactions_is_not_taken_from_a_user(
    claims: dict[str, bool], error: Any, plain: bool
) -> None:
    gate = AllButTheCluster()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("mine")
        if not plain:
            machine.node.override("Produce", lambda handler: handler)
        gate.node = False
        before = state_of(machine)
        batch = batch_of(b"\0\0\0\0\0\0", key=MARKER, producer_id=7, producer_epoch=0, base_sequence=0, **claims)
        for version in (3, BY_NAME, 13):
            assert (await client.produce("mine", batch=batch, version=version)).error_code == error.code
        assert state_of(machine) == before

    walk(steps, authorizer=gate)


def test_what_groups_have_committed_is_not_written_by_a_user() -> None:
    gate = AllButTheCluster()

    async def steps(machine: Machine, client: Client) -> None:
        await client.ask(FindCoordinatorRequest(coordinator_keys=["group"]), 4)
        await until(lambda: OFFSETS_TOPIC in machine.node.control.metadata.image.ids)
        gate.node = False
        before = state_of(machine)
        denied = await client.produce(OFFSETS_TOPIC, b"x", version=BY_NAME)
        assert denied.error_code == INVALID_TOPIC_EXCEPTION.code
        assert state_of(machine) == before

    walk(steps, authorizer=gate, offsets_topic_num_partitions="1")


# Nothing is left out.

BROKERS_FIELD = re.compile(r"^(replica|broker|voter|candidate|controller|cluster)_(id|epoch|state|directory_id)$")
TRIED = {
    ("Fetch", "replica_id"), ("Fetch", "replica_state"), ("Fetch", "cluster_id"), ("Fetch", "replica_epoch"),
    ("Fetch", "replica_directory_id"), ("ListOffsets", "replica_id"), ("OffsetForLeaderEpoch", "replica_id"),
}  # fmt: skip
OF_ADMINS = {"UnregisterBroker", "AddRaftVoter", "RemoveRaftVoter"}
"""They name nodes, and take ALTER of the cluster: tests/walks/test_denied.py."""


def fields_of(made: Any) -> Iterator[str]:
    for field in dataclasses.fields(made):
        yield field.name
    for inner in vars(made).values():
        if isinstance(inner, type) and dataclasses.is_dataclass(inner):
            yield from fields_of(inner)


def test_every_field_that_names_a_node_is_tried() -> None:
    named = {
        (api.name, field)
        for api in APIS.values()
        if api.name in SERVED and api.name not in OF_ADMINS
        for field in fields_of(api.request())
        if BROKERS_FIELD.match(field)
    }
    assert named == TRIED


def test_every_request_that_only_nodes_send_is_tried() -> None:
    of_everybody = set(SERVED) - {"Fetch"}
    assert set(CONTROLLER_SERVED) - of_everybody == set(OF_CONTROLLERS)


def test_the_batches_of_these_tests_would_be_taken_without_their_claims() -> None:
    async def steps(_machine: Machine, client: Client) -> None:
        await client.create("mine")
        batch = batch_of(b"\0\0\0\0\0\0", key=MARKER, producer_id=7, producer_epoch=0, base_sequence=0)
        assert (await client.produce("mine", batch=batch)).error_code == 0

    walk(steps)
