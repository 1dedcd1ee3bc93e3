"""Every served API answers in every version it is advertised in, with real content in the reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from penstock.kernels import Record
from penstock.model.errors import (
    BROKER_ID_NOT_REGISTERED,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ILLEGAL_SASL_STATE,
    INCONSISTENT_CLUSTER_ID,
    SECURITY_DISABLED,
)
from penstock.model.ids import ZERO_UUID
from penstock.protocol.batch import build_batch
from penstock.protocol.registry import APIS, Api
from penstock.server.reception.dispatch import SERVED
from penstock.testing import EmbeddedBroker, broker
from penstock.transport.net import AsyncioNet
from tests.walks.every_api import LOGINS, TOKENS, Target, codes, request_of

TOPIC = "walked"
TOPIC_TYPE = 2


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"penstock.admin.listener": "", "num.partitions": "2"}) as running:
        yield running


async def ask(node: EmbeddedBroker, message: Any, version: int) -> Any:
    host, _, port = node.bootstrap_servers.partition(":")
    link = await AsyncioNet(asyncio.get_running_loop()).dial(host, int(port), 5_000)
    try:
        return await link.request(message, version, 5_000)
    finally:
        link.close()


def batch() -> bytes:
    return build_batch([Record(0, 1_700_000_000_000, b"k", b"v", (("h", b"x"),))])


def _produce(m: Any, version: int, topic_id: bytes) -> Any:
    data = m.PartitionProduceData(index=0, records=batch())
    topic = m.TopicProduceData(name=TOPIC, topic_id=topic_id if version >= 13 else ZERO_UUID, partition_data=[data])
    return m(acks=-1, timeout_ms=1_000, topic_data=[topic])


def _fetch(m: Any, version: int, topic_id: bytes) -> Any:
    wanted = m.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = m.FetchTopic(topic=TOPIC, topic_id=topic_id if version >= 13 else ZERO_UUID, partitions=[wanted])
    return m(max_wait_ms=500, min_bytes=1, session_epoch=0 if version >= 7 else -1, topics=[topic])


def _join(m: Any, group: str, member_id: str = "") -> Any:
    protocol = m.JoinGroupRequestProtocol(name="range", metadata=b"what it reads")
    return m(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


class Membership(NamedTuple):
    """A group of its own for each case, with one member in it."""

    group: str
    member: str
    generation: int
    topic_id: bytes


def _commit(m: Any, v: int, g: Membership) -> Any:
    done = m.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="here")
    topic = m.OffsetCommitRequestTopic(name=TOPIC, topic_id=g.topic_id, partitions=[done])
    return m(group_id=g.group, member_id=g.member, generation_id_or_member_epoch=g.generation, topics=[topic])


def _fetch_offsets(m: Any, v: int, g: Membership) -> Any:
    if v < 8:
        return m(group_id=g.group, topics=[m.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])])
    topic = m.OffsetFetchRequestTopics(name=TOPIC, topic_id=g.topic_id, partition_indexes=[0])
    return m(groups=[m.OffsetFetchRequestGroup(group_id=g.group, topics=[topic])])


def _leave(m: Any, v: int, g: Membership) -> Any:
    if v < 3:
        return m(group_id=g.group, member_id=g.member)
    return m(group_id=g.group, members=[m.MemberIdentity(member_id=g.member)])


def _consumer_heartbeat(m: Any, v: int, g: Membership) -> Any:
    return m(
        group_id=f"{g.group}-new",
        member_id="made-by-the-client" if v else "",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )


IN_GROUP: dict[str, Callable[[Any, int, Membership], Any]] = {
    "JoinGroup": lambda m, v, g: _join(m, g.group, g.member),
    "SyncGroup": lambda m, v, g: m(
        group_id=g.group,
        generation_id=g.generation,
        member_id=g.member,
        protocol_type="consumer" if v >= 5 else None,
        protocol_name="range" if v >= 5 else None,
        assignments=[m.SyncGroupRequestAssignment(member_id=g.member, assignment=b"all of it")],
    ),
    "Heartbeat": lambda m, v, g: m(group_id=g.group, generation_id=g.generation, member_id=g.member),
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "OffsetFetch": _fetch_offsets,
    "OffsetDelete": lambda m, v, g: m(
        group_id=g.group,
        topics=[m.OffsetDeleteRequestTopic(name=TOPIC, partitions=[m.OffsetDeleteRequestPartition(partition_index=0)])],
    ),
    "DescribeGroups": lambda m, v, g: m(groups=[g.group], include_authorized_operations=v >= 3),
    "DeleteGroups": lambda m, v, g: m(groups_names=[g.group]),
    "ConsumerGroupHeartbeat": _consumer_heartbeat,
    "ConsumerGroupDescribe": lambda m, v, g: m(group_ids=[f"{g.group}-new"], include_authorized_operations=True),
}
EMPTY_FIRST = {"OffsetDelete", "DeleteGroups"}
"""What is refused while a group has members."""


async def membership(node: EmbeddedBroker, api: Api, version: int, topic_id: bytes) -> Membership:
    group = f"{api.name}-{version}"
    await ask(node, APIS[10].request()(key=group), 2)
    joined = await ask(node, _join(APIS[11].request(), group), 3)
    member = Membership(group, joined.member_id, joined.generation_id, topic_id)
    if api.name != "SyncGroup":
        await ask(node, IN_GROUP["SyncGroup"](APIS[14].request(), 0, member), 0)
    if api.name in ("OffsetFetch", *EMPTY_FIRST):
        await ask(node, _commit(APIS[8].request(), 9, member), 9)
    if api.name in EMPTY_FIRST:
        await ask(node, _leave(APIS[13].request(), 5, member), 5)
    if api.name == "ConsumerGroupDescribe":
        await ask(node, _consumer_heartbeat(APIS[68].request(), 1, member), 1)
    return member


class Transacting(NamedTuple):
    """A transaction of its own for each case, with one partition in it."""

    id: str
    producer_id: int
    producer_epoch: int


def _add_partitions(m: Any, v: int, t: Transacting) -> Any:
    topic = m.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    if v < 4:
        return m(
            v3_and_below_transactional_id=t.id,
            v3_and_below_producer_id=t.producer_id,
            v3_and_below_producer_epoch=t.producer_epoch,
            v3_and_below_topics=[topic],
        )
    one = m.AddPartitionsToTxnTransaction(
        transactional_id=t.id, producer_id=t.producer_id, producer_epoch=t.producer_epoch, topics=[topic]
    )
    return m(transactions=[one])


IN_TRANSACTION: dict[str, Callable[[Any, int, Transacting], Any]] = {
    "AddPartitionsToTxn": _add_partitions,
    "AddOffsetsToTxn": lambda m, v, t: m(
        transactional_id=t.id, producer_id=t.producer_id, producer_epoch=t.producer_epoch, group_id="g"
    ),
    "EndTxn": lambda m, v, t: m(
        transactional_id=t.id, producer_id=t.producer_id, producer_epoch=t.producer_epoch, committed=True
    ),
    "TxnOffsetCommit": lambda m, v, t: m(
        transactional_id=t.id,
        producer_id=t.producer_id,
        producer_epoch=t.producer_epoch,
        group_id="g",
        topics=[
            m.TxnOffsetCommitRequestTopic(
                name=TOPIC,
                partitions=[
                    m.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="here")
                ],
            )
        ],
    ),
    "DescribeTransactions": lambda m, v, t: m(transactional_ids=[t.id]),
    "ListTransactions": lambda m, v, t: m(state_filters=["Ongoing"]),
}


async def transacting(node: EmbeddedBroker, api: Api, version: int) -> Transacting:
    name = f"{api.name}-{version}"
    await ask(node, APIS[10].request()(key=name, key_type=1), 2)
    begun = await ask(node, APIS[22].request()(transactional_id=name, transaction_timeout_ms=60_000), 4)
    transaction = Transacting(name, begun.producer_id, begun.producer_epoch)
    await ask(node, _add_partitions(APIS[24].request(), 3, transaction), 3)
    if api.name == "TxnOffsetCommit":
        await ask(node, APIS[10].request()(key="g"), 2)
        await ask(node, IN_TRANSACTION["AddOffsetsToTxn"](APIS[25].request(), 3, transaction), 3)
    return transaction


FILL: dict[str, Callable[[Any, int, bytes], Any]] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "ListOffsets": lambda m, v, _: m(
        replica_id=-1,
        topics=[m.ListOffsetsTopic(name=TOPIC, partitions=[m.ListOffsetsPartition(partition_index=0, timestamp=-1)])],
    ),
    "Metadata": lambda m, v, _: m(topics=[m.MetadataRequestTopic(name=TOPIC)]),
    "OffsetForLeaderEpoch": lambda m, v, _: m(
        topics=[
            m.OffsetForLeaderTopic(topic=TOPIC, partitions=[m.OffsetForLeaderPartition(partition=0, leader_epoch=0)])
        ]
    ),
    "FindCoordinator": lambda m, v, _: m(coordinator_keys=["g"]) if v >= 4 else m(key="g"),
    "CreateTopics": lambda m, v, _: m(
        timeout_ms=5_000,
        topics=[m.CreatableTopic(name=f"made-{v}", num_partitions=1, replication_factor=1)],
    ),
    "DeleteTopics": lambda m, v, _: (
        m(timeout_ms=5_000, topics=[m.DeleteTopicState(name=f"made-{v}")])
        if v >= 6
        else m(timeout_ms=5_000, topic_names=[f"made-{v}"])
    ),
    "CreatePartitions": lambda m, v, _: m(
        timeout_ms=5_000, topics=[m.CreatePartitionsTopic(name=TOPIC, count=v + 3, assignments=None)]
    ),
    "DeleteRecords": lambda m, v, _: m(
        timeout_ms=5_000,
        topics=[m.DeleteRecordsTopic(name=TOPIC, partitions=[m.DeleteRecordsPartition(partition_index=1, offset=-1)])],
    ),
    "DescribeConfigs": lambda m, v, _: m(
        resources=[m.DescribeConfigsResource(resource_type=TOPIC_TYPE, resource_name=TOPIC, configuration_keys=None)],
    ),
    "AlterConfigs": lambda m, v, _: m(
        resources=[
            m.AlterConfigsResource(
                resource_type=TOPIC_TYPE,
                resource_name=TOPIC,
                configs=[m.AlterableConfig(name="retention.ms", value="1000000")],
            )
        ]
    ),
    "IncrementalAlterConfigs": lambda m, v, _: m(
        resources=[
            m.AlterConfigsResource(
                resource_type=TOPIC_TYPE,
                resource_name=TOPIC,
                configs=[m.AlterableConfig(name="retention.ms", config_operation=0, value="2000000")],
            )
        ]
    ),
    "DescribeTopicPartitions": lambda m, v, _: m(topics=[m.TopicRequest(name=TOPIC)]),
    "DescribeLogDirs": lambda m, v, _: m(topics=None),
    "DescribeProducers": lambda m, v, _: m(topics=[m.TopicRequest(name=TOPIC, partition_indexes=[0])]),
    "WriteTxnMarkers": lambda m, v, _: m(
        markers=[
            m.WritableTxnMarker(
                producer_id=7,
                transaction_result=True,
                topics=[m.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
            )
        ]
    ),
    "DescribeQuorum": lambda m, v, _: m(
        topics=[m.TopicData(topic_name="__cluster_metadata", partitions=[m.PartitionData(partition_index=0)])]
    ),
    "ApiVersions": lambda m, v, _: m(client_software_name="walk", client_software_version="1") if v >= 3 else m(),
    "InitProducerId": lambda m, v, _: m(transactional_id=None, transaction_timeout_ms=1_000),
}


def advertised(api: Api) -> range:
    return range(api.min, (5 if api.name == "InitProducerId" else api.max) + 1)


CASES = [(api, version) for api in APIS.values() if api.name in SERVED for version in advertised(api)]


ACLS = ("DescribeAcls", "CreateAcls", "DeleteAcls")
EXPECTED = {
    "UnregisterBroker": BROKER_ID_NOT_REGISTERED.code,
    "AddRaftVoter": INCONSISTENT_CLUSTER_ID.code,
    "RemoveRaftVoter": INCONSISTENT_CLUSTER_ID.code,
    **dict.fromkeys(ACLS, SECURITY_DISABLED.code),
    **dict.fromkeys(TOKENS, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.code),
    **dict.fromkeys(LOGINS, ILLEGAL_SASL_STATE.code),
}
"""A cluster on which the first ones succeeded would serve nobody else; there is no authorizer, nobody has proved a
name, and nobody is asked for a login."""


@pytest.mark.parametrize(("api", "version"), CASES, ids=[f"{api.name}-{version}" for api, version in CASES])
def test_every_version_is_answered(node: EmbeddedBroker, api: Api, version: int) -> None:
    async def main() -> Any:
        metadata = APIS[3].request()
        described = await ask(node, metadata(topics=[metadata.MetadataRequestTopic(name=TOPIC)]), 12)
        topic_id = described.topics[0].topic_id
        fill = FILL.get(api.name, lambda m, v, _: m())
        if api.name in ACLS:
            return await ask(node, request_of(api, version, Target(TOPIC, topic_id, "")), version)
        if api.name == "Fetch":
            await ask(node, _produce(APIS[0].request(), 9, topic_id), 9)
        if api.name == "DeleteTopics":
            await ask(node, FILL["CreateTopics"](APIS[19].request(), version, topic_id), 7)
        if api.name in IN_GROUP:
            member = await membership(node, api, version, topic_id)
            return await ask(node, IN_GROUP[api.name](api.request(), version, member), version)
        if api.name in IN_TRANSACTION:
            transaction = await transacting(node, api, version)
            return await ask(node, IN_TRANSACTION[api.name](api.request(), version, transaction), version)
        return await ask(node, fill(api.request(), version, topic_id), version)

    reply = asyncio.run(main())
    assert codes(reply) <= {0, EXPECTED.get(api.name, 0)}, "there is no other error in these replies"
