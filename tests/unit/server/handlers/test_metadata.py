from __future__ import annotations

import pytest

from penstock.model.errors import (
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    LISTENER_NOT_FOUND,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.server.doors import OPERATIONS_NOT_ASKED, ListenerInfo, Operation, ResourceType
from penstock.server.handlers import metadata
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import WILDCARD, ControlPlane, walk

Topic = MetadataRequest.MetadataRequestTopic


def named(*names: str, **said: bool) -> MetadataRequest:
    return MetadataRequest(topics=[Topic(name=name) for name in names], **said)


@pytest.mark.parametrize("version", range(14))
def test_every_version_shows_a_topic_with_its_leader(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        topic_id = await plane.create("orders", 2)
        reply = await plane.ask(metadata, named("orders"), version)
        assert [(each.node_id, each.host, each.port) for each in reply.brokers] == [(1, "127.0.0.1", 9092)]
        assert reply.controller_id == (1 if version >= 1 else -1)
        assert reply.cluster_id == (plane.cluster_id if version >= 2 else None)
        (topic,) = reply.topics
        assert (topic.error_code, topic.name) == (0, "orders")
        assert topic.topic_id == (topic_id if version >= 10 else bytes(16))
        assert [each.partition_index for each in topic.partitions] == [0, 1]
        for partition in topic.partitions:
            assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
            assert partition.leader_epoch == (0 if version >= 7 else -1)

    walk(steps)


def test_an_empty_list_means_all_in_version_0_and_none_later() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("a")
        await plane.create("b")
        names = [topic.name for topic in (await plane.ask(metadata, named(), 0)).topics]
        assert names == ["a", "b"]
        assert (await plane.ask(metadata, named(), 1)).topics == []
        everything = await plane.ask(metadata, MetadataRequest(topics=None), 12)
        assert [topic.name for topic in everything.topics] == ["a", "b"]

    walk(steps)


def test_a_missing_topic_is_created_and_shown_in_the_same_reply() -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(metadata, named("new"), 12)
        assert (reply.topics[0].error_code, len(reply.topics[0].partitions)) == (0, 4)
        assert plane.image.topic("new") is not None

    walk(steps, properties={"num.partitions": "4"})


def test_internal_topics_are_created_with_their_own_settings() -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(metadata, named("__consumer_offsets", "__transaction_state"), 12)
        assert [(len(topic.partitions), topic.is_internal) for topic in reply.topics] == [(50, True), (50, True)]
        assert plane.image.config(2, "__consumer_offsets")["cleanup.policy"] == "compact"
        assert plane.image.config(2, "__transaction_state")["compression.type"] == "uncompressed"

    properties = {f"{name}.replication.factor": "1" for name in ("offsets.topic", "transaction.state.log")}
    walk(steps, properties={**properties, "transaction.state.log.min.isr": "1"})


def test_nothing_is_created_when_the_client_or_the_broker_says_no() -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(metadata, named("new", "bad name", allow_auto_topic_creation=False), 12)
        codes = [topic.error_code for topic in reply.topics]
        assert codes == [UNKNOWN_TOPIC_OR_PARTITION.code, INVALID_TOPIC_EXCEPTION.code]
        asked = named("new", allow_auto_topic_creation=False, include_topic_authorized_operations=True)
        (absent,) = (await plane.ask(metadata, asked, 12)).topics
        assert absent.topic_authorized_operations == 0b110111111000, "what one may do to a topic is told without it too"
        assert plane.image.topics == {}

    walk(steps)

    async def without(plane: ControlPlane) -> None:
        reply = await plane.ask(metadata, named("new"), 3)
        assert reply.topics[0].error_code == UNKNOWN_TOPIC_OR_PARTITION.code

    walk(without, properties={"auto.create.topics.enable": "false"})


def test_a_topic_that_cannot_be_created_says_why() -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(metadata, named("new"), 12)
        assert reply.topics[0].error_code == INVALID_REPLICATION_FACTOR.code

    walk(steps, properties={"default.replication.factor": "3"})


def test_topics_are_found_by_id_from_version_12_on() -> None:
    async def steps(plane: ControlPlane) -> None:
        topic_id = await plane.create("orders")
        unknown = bytes(range(16))
        asked = [Topic(name=None, topic_id=topic_id), Topic(name=None, topic_id=unknown), Topic(name="orders")]
        reply = await plane.ask(metadata, MetadataRequest(topics=asked), 12)
        assert [(topic.error_code, topic.name, topic.topic_id) for topic in reply.topics] == [
            (0, "orders", topic_id),
            (UNKNOWN_TOPIC_ID.code, None, unknown),
        ]
        early = await plane.ask(metadata, MetadataRequest(topics=[Topic(name="orders", topic_id=topic_id)]), 11)
        assert early.topics[0].error_code == INVALID_REQUEST.code
        nothing = await plane.ask(metadata, MetadataRequest(topics=[Topic(name=None)]), 13)
        assert nothing.error_code == INVALID_REQUEST.code

    walk(steps)


def test_a_partition_without_a_leader_says_so() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        plane.clock.advance(9_001)
        plane.controller._tick()
        await plane.metadata.published(plane.quorum.end)
        (partition,) = (await plane.ask(metadata, named("orders"), 12)).topics[0].partitions
        assert (partition.error_code, partition.leader_id) == (LEADER_NOT_AVAILABLE.code, -1)
        assert (partition.replica_nodes, partition.offline_replicas) == ([1], [1])
        assert (await plane.ask(metadata, named("orders"), 12)).brokers == []
        await plane.lifecycle._beat()

    walk(steps)


def test_a_leader_that_does_not_listen_there_is_told_apart_from_version_6_on() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        inner = ListenerInfo("INNER", "127.0.0.1", 9999)
        for version, error in ((5, LEADER_NOT_AVAILABLE), (6, LISTENER_NOT_FOUND)):
            reply = await plane.ask(metadata, named("orders"), version, listener=inner)
            assert reply.topics[0].partitions[0].error_code == error.code
            assert reply.brokers == []

    walk(steps)


def test_one_broker_on_a_wildcard_listener_answers_with_the_dialled_address() -> None:
    async def steps(plane: ControlPlane) -> None:
        said = {"listener": WILDCARD, "dialled": ("192.0.2.7", 19092)}
        reply = await plane.ask(metadata, named(), 1, **said)
        assert [(each.host, each.port) for each in reply.brokers] == [("192.0.2.7", 19092)]

    walk(steps)


def test_advertised_listeners_win_over_the_dialled_address() -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(metadata, named(), 1, listener=WILDCARD, dialled=("192.0.2.7", 19092))
        assert [(each.host, each.port) for each in reply.brokers] == [("broker.example", 9094)]

    advertised = "PLAINTEXT://broker.example:9094,CONTROLLER://127.0.0.1:9093"
    walk(steps, properties={"advertised.listeners": advertised})


def test_what_may_not_be_described_is_refused_and_an_id_gets_no_name() -> None:
    no = Recording(Asked(Operation.DESCRIBE, ResourceType.TOPIC, "secret"))

    async def steps(plane: ControlPlane) -> None:
        topic_id = await plane.create("secret")
        reply = await plane.ask(metadata, named("secret"), 12)
        assert (reply.topics[0].error_code, reply.topics[0].topic_id) == (TOPIC_AUTHORIZATION_FAILED.code, bytes(16))
        by_id = await plane.ask(metadata, MetadataRequest(topics=[Topic(name=None, topic_id=topic_id)]), 12)
        assert (by_id.topics[0].error_code, by_id.topics[0].name) == (TOPIC_AUTHORIZATION_FAILED.code, None)
        assert (await plane.ask(metadata, MetadataRequest(topics=None), 12)).topics == []

    walk(steps, authorizer=no)


def test_who_may_not_create_gets_no_topic() -> None:
    no = Recording(
        Asked(Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster"),
        Asked(Operation.CREATE, ResourceType.TOPIC, "new"),
    )

    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(metadata, named("new"), 12)
        assert reply.topics[0].error_code == TOPIC_AUTHORIZATION_FAILED.code
        assert plane.image.topics == {}

    walk(steps, authorizer=no)


def test_authorized_operations_are_told_on_request_only() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("orders")
        plain = await plane.ask(metadata, named("orders"), 9)
        assert plain.cluster_authorized_operations == OPERATIONS_NOT_ASKED
        assert plain.topics[0].topic_authorized_operations == OPERATIONS_NOT_ASKED
        asked = named("orders", include_cluster_authorized_operations=True, include_topic_authorized_operations=True)
        reply = await plane.ask(metadata, asked, 9)
        # What Apache Kafka answers without an authorizer.
        assert (reply.cluster_authorized_operations, reply.topics[0].topic_authorized_operations) == (8096, 3576)

    walk(steps)
