"""What exactly each API answers, in each version, to somebody who lacks one right: codes, omissions, and bits."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from penstock.model.errors import UNKNOWN_TOPIC_ID
from penstock.model.ids import AUDIT_TOPIC, ZERO_UUID, Uuid
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.registry import APIS, Api
from penstock.server.doors import (
    ANONYMOUS,
    AUDIT_CLIENT,
    OPERATIONS_NOT_ASKED,
    ListenerInfo,
    Operation,
    Principal,
    ResourceType,
)
from penstock.server.handlers import incremental_alter_configs
from penstock.server.reception.dispatch import CONTROLLER_SERVED
from penstock.transport.dial import Severed
from tests.walks.control_plane import ControlPlane
from tests.walks.control_plane import walk as control_walk
from tests.walks.data_plane import BY_ID, BY_NAME, Client, Machine, at, batch_of, errors, produce_request, walk
from tests.walks.every_api import LOGINS, MAKERS, TOKENS, Target, codes, request_of

TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, ID_DENIED = 29, 30, 31, 53
ALICE = Principal("User", "alice")
BIT = {operation: 1 << operation for operation in Operation}


class Grants:
    """Allows everything until it is shut; then only what was granted, as `READ topic:orders` to a principal."""

    acls = None

    def __init__(self) -> None:
        self.open = True
        self.granted: set[tuple[Principal, Operation, ResourceType, str]] = set()
        self.offences: list[str] = []

    def shut(self, *rights: str, to: Principal = ANONYMOUS) -> None:
        self.open = False
        self.offences.clear()
        self.granted = {each for each in self.granted if each[0] != to}
        for right in rights:
            operation, _, resource = right.partition(" ")
            kind, _, name = resource.partition(":")
            self.granted.add((to, Operation[operation], ResourceType[kind.upper()], name or "kafka-cluster"))

    def allows(self, principal: Principal, _host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self.open or (principal, operation, kind, name) in self.granted

    def allows_any(self, principal: Principal, _host: str, operation: Operation, kind: ResourceType) -> bool:
        return self.open or any(right[:3] == (principal, operation, kind) for right in self.granted)

    def denied(self, _principal: Principal, _host: str, operation: Operation, kind: ResourceType, name: str) -> None:
        self.offences.append(f"{operation.name} {kind.name.lower()}:{name}")


class Case(NamedTuple):
    """One API, what its client may do, and what a piece of the reply must be, by version."""

    api: str
    grants: tuple[str, ...]
    seen: Callable[[Any, int], Any]
    wanted: Any


def each(path: str, *fields: str) -> Callable[[Any, int], Any]:
    """The fields of everything at the end of a path through lists, `topics.partitions` say."""

    def look(reply: Any, _version: int) -> list[Any]:
        found = [reply]
        for step in filter(None, path.split(".")):
            found = [inner for outer in found for inner in getattr(outer, step) or ()]
        return [
            tuple(getattr(one, field) for field in fields) if fields[1:] else getattr(one, fields[0]) for one in found
        ]

    return look


def whole(*fields: str) -> Callable[[Any, int], Any]:
    return each("", *fields)


def since(
    version: int, later: Callable[[Any, int], Any], before: Callable[[Any, int], Any]
) -> Callable[[Any, int], Any]:
    return lambda reply, at_version: (later if at_version >= version else before)(reply, at_version)


class since_version(NamedTuple):  # noqa: N801 (it reads like `since`)
    """What is wanted from a version on, and before."""

    version: int
    later: Any
    before: Any


def wanted_in(version: int, wanted: Any) -> Any:
    if isinstance(wanted, since_version):
        return wanted.later if version >= wanted.version else wanted.before
    return wanted


GROUP_READERS = ("JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup", "ConsumerGroupHeartbeat")
CODE = "error_code"
CASES = [
    Case("Produce", (), each("responses.partition_responses", CODE, "base_offset"), [(TOPIC_DENIED, -1)]),
    Case("Fetch", (), each("responses.partitions", CODE, "high_watermark"), [(TOPIC_DENIED, -1)]),
    Case("ListOffsets", (), each("topics.partitions", CODE, "offset"), [(TOPIC_DENIED, -1)]),
    Case("ListOffsets", ("READ topic:secret",), each("topics.partitions", CODE), [TOPIC_DENIED]),
    Case("ListOffsets", ("DESCRIBE topic:secret",), each("topics.partitions", CODE), [0]),
    Case(
        "Metadata",
        (),
        each("topics", CODE, "name", "topic_id", "partitions", "is_internal", "topic_authorized_operations"),
        [(TOPIC_DENIED, "secret", ZERO_UUID, [], False, OPERATIONS_NOT_ASKED)],
    ),
    Case("OffsetCommit", (), each("topics.partitions", CODE), [GROUP_DENIED]),
    Case("OffsetCommit", ("READ topic:secret",), each("topics.partitions", CODE), [GROUP_DENIED]),
    Case("OffsetCommit", ("READ group:group",), each("topics.partitions", CODE), [TOPIC_DENIED]),
    Case(
        "OffsetFetch",
        (),
        since(
            8,
            each("groups", CODE, "topics"),
            since(2, whole(CODE, "topics"), lambda reply, _: [(reply.topics[0].partitions[0].error_code, [])]),
        ),
        [(GROUP_DENIED, [])],
    ),
    Case(
        "OffsetFetch",
        ("DESCRIBE group:group",),
        since(
            8,
            each("groups.topics.partitions", CODE, "committed_offset"),
            each("topics.partitions", CODE, "committed_offset"),
        ),
        [(TOPIC_DENIED, -1)],
    ),
    Case(
        "FindCoordinator",
        (),
        since(4, each("coordinators", CODE, "node_id"), whole(CODE, "node_id")),
        [(GROUP_DENIED, -1)],
    ),
    *(Case(api, (), whole(CODE), [GROUP_DENIED]) for api in GROUP_READERS),
    Case("ConsumerGroupHeartbeat", ("READ group:group",), whole(CODE), [TOPIC_DENIED]),
    Case("DescribeGroups", (), each("groups", CODE, "authorized_operations"), [(GROUP_DENIED, OPERATIONS_NOT_ASKED)]),
    Case("ConsumerGroupDescribe", (), each("groups", CODE, "members"), [(GROUP_DENIED, [])]),
    Case("ListGroups", (), each("groups", "group_id"), []),
    Case("DeleteGroups", ("READ group:group",), each("results", CODE), [GROUP_DENIED]),
    Case("OffsetDelete", (), whole(CODE, "topics"), [(GROUP_DENIED, [])]),
    Case("CreateTopics", (), each("topics", CODE, "name"), [(TOPIC_DENIED, "new")]),
    Case("CreateTopics", ("CREATE topic:other",), each("topics", CODE), [TOPIC_DENIED]),
    Case("DeleteTopics", (), each("responses", CODE, "name"), [(TOPIC_DENIED, "secret")]),
    Case("DeleteTopics", ("DESCRIBE topic:secret",), each("responses", CODE), [TOPIC_DENIED]),
    Case("DeleteTopics", ("DELETE topic:secret",), each("responses", CODE), [TOPIC_DENIED]),
    Case("CreatePartitions", ("DESCRIBE topic:secret",), each("results", CODE), [TOPIC_DENIED]),
    Case("DeleteRecords", (), each("topics.partitions", CODE, "low_watermark"), [(TOPIC_DENIED, -1)]),
    Case("InitProducerId", (), whole(CODE, "producer_id", "producer_epoch"), [(CLUSTER_DENIED, -1, -1)]),
    Case("InitProducerId", ("WRITE topic:any",), whole(CODE), [0]),
    Case("InitProducerId", ("IDEMPOTENT_WRITE cluster",), whole(CODE), [0]),
    Case("OffsetForLeaderEpoch", (), each("topics.partitions", CODE, "end_offset"), [(TOPIC_DENIED, -1)]),
    Case("OffsetForLeaderEpoch", ("CLUSTER_ACTION cluster",), each("topics.partitions", CODE), [0]),
    Case("OffsetForLeaderEpoch", ("DESCRIBE topic:secret",), each("topics.partitions", CODE), [0]),
    Case("DescribeConfigs", ("DESCRIBE topic:secret",), each("results", CODE, "configs"), [(TOPIC_DENIED, [])]),
    Case("AlterConfigs", (), each("responses", CODE), [TOPIC_DENIED]),
    Case("IncrementalAlterConfigs", (), each("responses", CODE), [TOPIC_DENIED]),
    Case("ListConfigResources", (), whole(CODE, "config_resources"), [(CLUSTER_DENIED, [])]),
    Case("DescribeCluster", (), whole(CODE, "cluster_authorized_operations"), [(0, OPERATIONS_NOT_ASKED)]),
    Case(
        "DescribeTopicPartitions", (), each("topics", CODE, "partitions", "topic_id"), [(TOPIC_DENIED, [], ZERO_UUID)]
    ),
    Case(
        "DescribeLogDirs", (), since(3, whole(CODE, "results"), lambda r, _: [(31, r.results)]), [(CLUSTER_DENIED, [])]
    ),
    Case("AlterReplicaLogDirs", (), each("results.partitions", CODE), [CLUSTER_DENIED]),
    Case("DescribeProducers", ("DESCRIBE topic:secret",), each("topics.partitions", CODE), [TOPIC_DENIED]),
    Case(
        "AddPartitionsToTxn",
        ("WRITE topic:secret",),
        since(4, whole(CODE), each("results_by_topic_v3_and_below.results_by_partition", "partition_error_code")),
        since_version(4, [CLUSTER_DENIED], [ID_DENIED]),
    ),
    Case(
        "AddPartitionsToTxn",
        ("WRITE transactional_id:tx",),
        since(4, whole(CODE), each("results_by_topic_v3_and_below.results_by_partition", "partition_error_code")),
        since_version(4, [CLUSTER_DENIED], [TOPIC_DENIED]),
    ),
    Case("AddOffsetsToTxn", ("READ group:group",), whole(CODE), [ID_DENIED]),
    Case("AddOffsetsToTxn", ("WRITE transactional_id:tx",), whole(CODE), [GROUP_DENIED]),
    Case("EndTxn", ("DESCRIBE transactional_id:tx",), whole(CODE), [ID_DENIED]),
    Case("DescribeTransactions", ("WRITE topic:secret",), each("transaction_states", CODE), [ID_DENIED]),
    Case("ListTransactions", (), whole(CODE, "transaction_states"), [(0, [])]),
    Case("WriteTxnMarkers", ("WRITE topic:secret",), each("markers.topics.partitions", CODE), [CLUSTER_DENIED]),
    Case("TxnOffsetCommit", ("READ group:group", "READ topic:secret"), each("topics.partitions", CODE), [ID_DENIED]),
    Case("TxnOffsetCommit", ("WRITE transactional_id:tx",), each("topics.partitions", CODE), [GROUP_DENIED]),
    Case(
        "TxnOffsetCommit",
        ("WRITE transactional_id:tx", "READ group:group"),
        each("topics.partitions", CODE),
        [TOPIC_DENIED],
    ),
    Case("WriteTxnMarkers", ("ALTER cluster",), each("markers.topics.partitions", CODE), [0]),
    Case("WriteTxnMarkers", ("CLUSTER_ACTION cluster",), each("markers.topics.partitions", CODE), [0]),
    Case("DescribeQuorum", (), whole(CODE, "topics"), [(CLUSTER_DENIED, [])]),
    Case("UpdateFeatures", (), whole(CODE), [CLUSTER_DENIED]),
    Case(
        "ElectLeaders",
        (),
        since(1, whole(CODE), each("replica_election_results.partition_result", CODE)),
        [CLUSTER_DENIED],
    ),
    Case("AlterPartitionReassignments", (), whole(CODE, "responses"), [(CLUSTER_DENIED, [])]),
    Case("ListPartitionReassignments", (), whole(CODE, "topics"), [(CLUSTER_DENIED, [])]),
    *(Case(api, (), whole(CODE), [CLUSTER_DENIED]) for api in ("UnregisterBroker", "AddRaftVoter", "RemoveRaftVoter")),
    Case("DescribeAcls", (), whole(CODE, "resources"), [(CLUSTER_DENIED, [])]),
    Case("CreateAcls", ("DESCRIBE cluster",), each("results", CODE), [CLUSTER_DENIED]),
    Case("DeleteAcls", ("DESCRIBE cluster",), each("filter_results", CODE, "matching_acls"), [(CLUSTER_DENIED, [])]),
    Case("DescribeClientQuotas", (), whole(CODE, "entries"), [(CLUSTER_DENIED, None)]),
    Case("AlterClientQuotas", ("DESCRIBE_CONFIGS cluster",), each("entries", CODE), [CLUSTER_DENIED]),
    Case("DescribeUserScramCredentials", (), whole(CODE, "results"), [(CLUSTER_DENIED, [])]),
    Case(
        "AlterUserScramCredentials", ("DESCRIBE cluster",), each("results", CODE, "user"), [(CLUSTER_DENIED, "alice")]
    ),
]


def api_of(name: str) -> Api:
    return next(api for api in APIS.values() if api.name == name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.api} with {', '.join(case.grants) or 'nothing'}")
def test_every_version_denies_in_the_same_places(case: Case) -> None:
    gate, api = Grants(), api_of(case.api)

    async def steps(machine: Machine, client: Client) -> None:
        topic_id = await client.create("secret")
        await client.produce("secret", b"value")
        if case.api == "OffsetFetch":
            await coordinated(client)
        gate.shut(*case.grants)
        for version in range(api.min, client.link.newest(api.key) + 1):
            reply = await client.ask(request_of(api, version, Target("secret", topic_id, "new")), version)
            assert case.seen(reply, version) == wanted_in(version, case.wanted), f"version {version}"

    walk(steps, authorizer=gate, offsets_topic_num_partitions="1")


async def coordinated(client: Client) -> None:
    """Returns when the group has a coordinator that answers."""
    await client.ask(FindCoordinatorRequest(coordinator_keys=["group"]), 4)
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="group", topics=None)
    while (await client.ask(OffsetFetchRequest(groups=[group]), 8)).groups[0].error_code:
        pass  # the walk as a whole has a deadline


# Metadata


def names(reply: Any) -> list[Any]:
    return [(topic.error_code, topic.name) for topic in reply.topics]


def test_metadata_tells_of_each_topic_what_its_client_may_know() -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        hidden, shown = await client.create("hidden"), await client.create("shown")
        gate.shut("DESCRIBE topic:shown", "READ topic:shown", "DESCRIBE topic:missing")
        wanted = MetadataRequest.MetadataRequestTopic
        by_id = MetadataRequest(
            topics=[wanted(name=None, topic_id=each) for each in (hidden, shown, Uuid(bytes(range(16))))]
        )
        for version in (12, 13):
            reply = await client.ask(by_id, version)
            assert names(reply) == [(TOPIC_DENIED, None), (0, "shown"), (UNKNOWN_TOPIC_ID.code, None)]
            assert [topic.topic_id for topic in reply.topics[:2]] == [hidden, shown]
        for version in range(1, 14):
            assert names(await client.ask(MetadataRequest(topics=None), version)) == [(0, "shown")]
        gate.shut("DESCRIBE topic:missing")
        for version in range(14):
            every = MetadataRequest(topics=None if version else [])
            reply = await client.ask(every, version)
            assert (names(reply), len(reply.brokers)) == ([], 1)
            # What is missing would be made, but neither the cluster nor the topic is the client's to create.
            reply = await client.ask(MetadataRequest(topics=[wanted(name="missing")]), version)
            assert names(reply) == [(TOPIC_DENIED, "missing")]
        assert "missing" not in machine.node.control.metadata.image.ids

    walk(steps, authorizer=gate)


@pytest.mark.parametrize("version", range(8, 14))
def test_the_bits_of_metadata_are_those_of_its_client(version: int) -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("shown")
        gate.shut("DESCRIBE topic:shown", "WRITE topic:shown", "ALTER cluster")
        request = MetadataRequest(
            topics=None,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=version <= 10,
        )
        reply = await client.ask(request, version)
        bits = BIT[Operation.DESCRIBE] | BIT[Operation.WRITE]
        assert [topic.topic_authorized_operations for topic in reply.topics] == [bits]
        if version <= 10:
            assert reply.cluster_authorized_operations == 0, "who may not describe the cluster is told no bit"
            gate.shut("DESCRIBE cluster", "ALTER cluster")
            reply = await client.ask(request, version)
            assert reply.cluster_authorized_operations == BIT[Operation.DESCRIBE] | BIT[Operation.ALTER]
        assert gate.offences == []

    walk(steps, authorizer=gate)


# Topics that go


def test_deleting_takes_a_right_to_the_cluster_or_to_see_and_delete_the_topic() -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        ids = {name: await client.create(name) for name in ("a", "b", "c")}

        async def delete(name: str) -> tuple[int, str | None]:
            request = DeleteTopicsRequest(
                topics=[DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=ids[name])], timeout_ms=1_000
            )
            (result,) = (await client.ask(request, 6)).responses
            return result.error_code, result.name

        gate.shut("DELETE topic:a")
        assert await delete("a") == (TOPIC_DENIED, None)
        gate.shut("DESCRIBE topic:a")
        assert await delete("a") == (TOPIC_DENIED, "a")
        gate.shut("DESCRIBE topic:a", "DELETE topic:a")
        assert await delete("a") == (0, "a")
        assert await delete("b") == (TOPIC_DENIED, None)
        gate.shut("DELETE cluster")
        assert (await delete("b"), await delete("c")) == ((0, "b"), (0, "c"))

    walk(steps, authorizer=gate)


# Produce and fetch, by every way


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("version", [3, 9, BY_NAME, BY_ID])
def test_a_produce_is_denied_by_the_short_way_and_by_the_long_one(version: int, plain: bool) -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("mine")
        await client.create("secret")
        if not plain:
            machine.node.override("Produce", lambda handler: handler)
        gate.shut("WRITE topic:mine")
        assert (await client.produce("mine", b"x", version=version)).error_code == 0
        denied = await client.produce("secret", b"x", version=version)
        assert (denied.error_code, denied.base_offset) == (TOPIC_DENIED, -1)
        gate.shut()
        assert (await client.produce("mine", b"x", version=version)).error_code == TOPIC_DENIED
        gate.open = True
        assert await client.values("mine") == [b"x"]
        assert await client.values("secret") == []

    walk(steps, authorizer=gate)


@pytest.mark.parametrize("acks", [-1, 1, 0])
def test_a_transactional_id_is_asked_for_before_anything_else(acks: int) -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("mine")
        gate.shut("WRITE topic:mine")
        batch = batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        data = ProduceRequest.PartitionProduceData(index=0, records=batch)
        topics = [ProduceRequest.TopicProduceData(name="mine", partition_data=[data])]
        request = ProduceRequest(transactional_id="tx", acks=acks, timeout_ms=1_000, topic_data=topics)
        if acks:
            reply = await client.ask(request, BY_NAME)
            assert [one.error_code for one in reply.responses[0].partition_responses] == [ID_DENIED]
        else:
            with pytest.raises(Severed):
                await client.ask(request, BY_NAME)
        assert "WRITE transactional_id:tx" in gate.offences

    walk(steps, authorizer=gate)


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_a_session_that_another_principal_resumes_shows_what_that_one_may_read(version: int) -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        mine, theirs = await client.create("mine"), await client.create("theirs")
        other = await machine.dial()
        connection = list(machine.node._reception.connections)[-1]
        connection.principal = ALICE
        wanted = [at(mine if version == BY_ID else "mine", 0), at(theirs if version == BY_ID else "theirs", 0)]
        opened = await client.fetch(*wanted, session=(0, 0), version=version)
        for topic in ("mine", "theirs"):
            await client.produce(topic, b"value")
        gate.shut("READ topic:mine", "READ topic:theirs")
        gate.shut("READ topic:mine", to=ALICE)
        reply = await other.fetch(session=(opened.session_id, 1), version=version)
        assert sorted(errors(reply)) == [0, TOPIC_DENIED]
        assert sum(bool(data.records) for topic in reply.responses for data in topic.partitions) == 1

    walk(steps, authorizer=gate)


@pytest.mark.parametrize("field", ["replica_id", "replica_state"])
def test_cve_2018_1288_who_says_that_it_is_a_follower_has_to_be_a_node(field: str) -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        topic_id = await client.create("mine")
        await client.produce("mine", b"value")
        version = BY_NAME if field == "replica_id" else 15
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=[at(topic_id if version == 15 else "mine", 0)]
        )
        if field == "replica_id":
            request.replica_id = 1
        else:
            request.replica_state = FetchRequest.ReplicaState(replica_id=1, replica_epoch=1)
        gate.shut("READ topic:mine")
        reply = await client.ask(request, version)
        assert errors(reply) == [TOPIC_DENIED]
        assert gate.offences == ["CLUSTER_ACTION cluster:kafka-cluster"]

    walk(steps, authorizer=gate)


def test_who_is_no_follower_gets_no_session_of_one() -> None:
    """Such sessions drive those of consumers out, and stay."""
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("mine")
        opened = await client.fetch(at("mine", 0), session=(0, 0), version=BY_NAME)
        gate.shut("READ topic:mine")
        for session_id, epoch in ((0, 0), (opened.session_id, 1), (opened.session_id, 0)):
            request = FetchRequest(replica_id=1, max_wait_ms=0, min_bytes=0, topics=[at("mine", 0)])
            request.session_id, request.session_epoch = session_id, epoch
            reply = await client.ask(request, BY_NAME)
            assert (errors(reply), reply.session_id) == ([TOPIC_DENIED], 0)
        reply = await client.fetch(session=(opened.session_id, 1), version=BY_NAME)
        assert (reply.error_code, reply.session_id) == (0, opened.session_id)

    walk(steps, authorizer=gate)


def test_audit_records_are_written_by_nodes_under_their_client_id_and_by_nobody_else() -> None:
    """A node may be one by CLUSTER_ACTION alone; what it writes there is no offence and nothing to tell."""
    gate, invalid_topic = Grants(), 17

    async def steps(machine: Machine, client: Client) -> None:
        await client.create(AUDIT_TOPIC)
        written: list[tuple[int, int]] = []
        for client_id, right in (
            (AUDIT_CLIENT, "CLUSTER_ACTION cluster"),
            (AUDIT_CLIENT, "WRITE topic:orders"),
            (AUDIT_CLIENT, f"WRITE topic:{AUDIT_TOPIC}"),
            ("shop", "CLUSTER_ACTION cluster"),
        ):
            client.link.client_id = client_id
            gate.shut(right)
            reply = await client.ask(produce_request(AUDIT_TOPIC, batch_of(b"{}")), 12)
            written.append((reply.responses[0].partition_responses[0].error_code, len(gate.offences)))
        assert written == [(0, 0), (TOPIC_DENIED, 1), (invalid_topic, 0), (TOPIC_DENIED, 1)]

    walk(steps, authorizer=gate)


def test_two_ways_that_are_both_closed_are_one_offence() -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("secret")
        gate.shut()
        await client.ask(InitProducerIdRequest(transactional_id=None), 5)
        assert gate.offences == ["IDEMPOTENT_WRITE cluster:kafka-cluster"]
        gate.shut()
        assert not await client.try_create("new")
        assert gate.offences == ["CREATE topic:new"]
        gate.shut()
        assert await client.topics() == set()
        assert gate.offences == []

    walk(steps, authorizer=gate)


def test_a_pattern_finds_only_topics_that_its_member_may_know_of() -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        mine = await client.create("shared-mine")
        await client.create("shared-theirs")
        await coordinated(client)
        gate.shut("READ group:group", "DESCRIBE topic:shared-mine")
        request = ConsumerGroupHeartbeatRequest(
            group_id="group",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=[],
            subscribed_topic_regex="shared-.*",
            topic_partitions=[],
        )
        reply = await client.ask(request, 1)
        assert reply.error_code == 0
        assert [topic.topic_id for topic in reply.assignment.topic_partitions] == [mine]
        assert gate.offences == []

    walk(steps, authorizer=gate, offsets_topic_num_partitions="1")


# Listeners of controllers

CONTROLLERS = ListenerInfo("CONTROLLER", "127.0.0.1", 9093, for_controllers=True)
BY_RESOURCE = {
    "CreateTopics": {TOPIC_DENIED},
    "DeleteTopics": {TOPIC_DENIED},
    "CreatePartitions": {TOPIC_DENIED},
    "DescribeConfigs": {TOPIC_DENIED},
    "AlterConfigs": {TOPIC_DENIED},
    "IncrementalAlterConfigs": {TOPIC_DENIED},
}
"""What is answered with the code of a topic; everything else there takes a right to the cluster."""


@pytest.mark.parametrize("name", [name for name in CONTROLLER_SERVED if name not in {"ApiVersions"} | TOKENS | LOGINS])
def test_nobody_but_a_node_or_an_admin_is_served_where_controllers_listen(name: str) -> None:
    api = api_of(name)

    async def steps(plane: ControlPlane) -> None:
        topic_id = await plane.create("secret")
        before = plane.image.offset
        gate = plane.authorizer = Grants()
        gate.shut("DESCRIBE topic:secret", "READ topic:secret")
        handler = import_module(f"penstock.server.handlers.{api.module}")
        # A fetch has a place for the error of the whole request from version 7 on, and nodes send later ones.
        for version in range(7 if name == "Fetch" else api.min, api.max + 1):
            request: Any = api.request()()
            if name in MAKERS and name != "Fetch":
                request = request_of(api, version, Target("secret", topic_id, "new"))
            reply = await plane.ask(handler, request, version, listener=CONTROLLERS)
            whole_code = bool(getattr(reply, "error_code", 0))
            assert codes(reply) - ({0} if not whole_code else set()) == BY_RESOURCE.get(name, {CLUSTER_DENIED})
            assert gate.offences
        assert plane.image.offset == before

    control_walk(steps)


def test_what_a_controller_logs_is_changed_by_nodes_alone() -> None:
    async def steps(plane: ControlPlane) -> None:
        gate = plane.authorizer = Grants()
        made = IncrementalAlterConfigsRequest
        change = made.AlterableConfig(name="root", config_operation=0, value="INFO")
        logger = made.AlterConfigsResource(resource_type=8, resource_name="1", configs=[change])
        for right, code in (("ALTER_CONFIGS cluster", CLUSTER_DENIED), ("CLUSTER_ACTION cluster", 0)):
            gate.shut(right)
            request = made(resources=[logger], validate_only=True)
            reply = await plane.ask(incremental_alter_configs, request, 1, listener=CONTROLLERS)
            assert [each.error_code for each in reply.responses] == [code]

    control_walk(steps)
