"""What is asked of each API. A question names things that the asker may and may not touch side by side.

Questions whose answer would cost much to undo are put to those only whom the answer depends on (`few`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.model.ids import METADATA_TOPIC, OFFSETS_TOPIC, ZERO_UUID, Uuid
from penstock.protocol.registry import APIS, Api
from tests.compat.authorization.cast import HERE, OWNERS
from tests.compat.authorization.state import (
    COMMITTED,
    CROWDS,
    GROUPS,
    LONG_MS,
    MISSING,
    TOPICS,
    TRANSACTIONS,
    World,
    records,
)

PENSTOCK_TOPIC = "__penstock_progress"
"""A name of ours that wide ACLs do not open; nobody has made it."""
EVERY_TOPIC = (*TOPICS, *MISSING, METADATA_TOPIC, OFFSETS_TOPIC, PENSTOCK_TOPIC)
EVERY_GROUP = (*GROUPS, *CROWDS, *MISSING)
TRANSACTIONAL_IDS = ("own", "pre-one", "other")
STRANGER = Uuid(b"nobody's topic, ")
NOBODYS_PRODUCER = 4_000
FOLLOWER = 2
"""A broker that there is not."""
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

Maker = Callable[[Any, int, World], Any]


class Question(NamedTuple):
    """One question of one API, in some of its versions. `few`: of those alone whose rules are about its resources."""

    api: Api
    name: str
    make: Maker
    since: int
    until: int
    few: bool

    def request(self, version: int, world: World) -> Any:
        return self.make(self.api.request(), version, world)


QUESTIONS: list[Question] = []
_BY_NAME = {api.name: api for api in APIS.values()}


def question(*names: str, since: int = 0, until: int = 99, few: bool = False) -> Callable[[Maker], Maker]:
    """Adds a question to each of these APIs, under the name of the function that makes it."""

    def add(make: Maker) -> Maker:
        name = make.__name__.strip("_").replace("_", " ")
        QUESTIONS.extend(Question(_BY_NAME[each], name, make, since, until, few) for each in names)
        return make

    return add


# -- records


def produced(made: Any, version: int, world: World, *topics: str, data: bytes | None = None) -> list[Any]:
    part = made.PartitionProduceData(index=0, records=records() if data is None else data)
    if version >= 13:
        ids = [world.topic_ids.get(topic, STRANGER) for topic in topics]
        return [made.TopicProduceData(topic_id=each, partition_data=[part]) for each in dict.fromkeys(ids)]
    return [made.TopicProduceData(name=topic, partition_data=[part]) for topic in topics]


@question("Produce")
def _to_every_topic(made: Any, version: int, world: World) -> Any:
    return made(acks=-1, timeout_ms=1_000, topic_data=produced(made, version, world, *EVERY_TOPIC))


for _topic in ("own", "pre-one", "other", "public", "void"):

    def _to_one_topic(made: Any, version: int, world: World, topic: str = _topic) -> Any:
        """Nothing unusual is in it: what our short way is for."""
        return made(acks=1, timeout_ms=1_000, topic_data=produced(made, version, world, topic))

    _to_one_topic.__name__ = f"_to_{_topic}"
    question("Produce")(_to_one_topic)


@question("Produce")
def _to_two_topics(made: Any, version: int, world: World) -> Any:
    return made(acks=-1, timeout_ms=1_000, topic_data=produced(made, version, world, "own", "pre-one"))


@question("Produce")
def _with_unknown_acks(made: Any, version: int, world: World) -> Any:
    return made(acks=2, timeout_ms=1_000, topic_data=produced(made, version, world, *TOPICS))


for _id in (*TRANSACTIONAL_IDS, None) if TRANSACTIONS else ():

    def _in_a_transaction(made: Any, version: int, world: World, name: str | None = _id) -> Any:
        data = produced(made, version, world, *TOPICS, data=records(transactional=True))
        return made(transactional_id=name, acks=-1, timeout_ms=1_000, topic_data=data)

    _in_a_transaction.__name__ = f"_in_the_transaction_of_{_id}"
    question("Produce")(_in_a_transaction)


@question("Produce", since=0 if TRANSACTIONS else 99)
def _with_an_id_and_no_transaction(made: Any, version: int, world: World) -> Any:
    data = produced(made, version, world, *TOPICS)
    return made(transactional_id="own", acks=-1, timeout_ms=1_000, topic_data=data)


def fetched(made: Any, version: int, world: World, *topics: str, offset: int = 0) -> list[Any]:
    part = made.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=200)
    if version >= 13:
        ids = [world.topic_ids.get(topic, STRANGER) for topic in topics]
        return [made.FetchTopic(topic_id=each, partitions=[part]) for each in dict.fromkeys(ids)]
    return [made.FetchTopic(topic=topic, partitions=[part]) for topic in topics]


_FETCHED = [topic for topic in EVERY_TOPIC if topic != OFFSETS_TOPIC]


@question("Fetch")
def _every_topic(made: Any, version: int, world: World) -> Any:
    return made(max_wait_ms=0, min_bytes=0, topics=fetched(made, version, world, *_FETCHED))


@question("Fetch")
def _as_a_follower(made: Any, version: int, world: World) -> Any:
    request = made(max_wait_ms=0, min_bytes=0, topics=fetched(made, version, world, *_FETCHED))
    if version < 15:
        request.replica_id = FOLLOWER
    else:
        request.replica_state = made.ReplicaState(replica_id=FOLLOWER, replica_epoch=1)
    return request


@question("ListOffsets")
def _every_end(made: Any, version: int, _: World) -> Any:
    part = made.ListOffsetsPartition(partition_index=0, timestamp=-1)
    return made(
        replica_id=-1,
        topics=[made.ListOffsetsTopic(name=each, partitions=[part]) for each in EVERY_TOPIC if each != OFFSETS_TOPIC],
    )


@question("ListOffsets")
def _every_end_as_a_follower(made: Any, version: int, world: World) -> Any:
    request = _every_end(made, version, world)
    request.replica_id = FOLLOWER
    return request


@question("OffsetForLeaderEpoch")
def _of_every_topic(made: Any, version: int, _: World) -> Any:
    part = made.OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=-1)
    names = [each for each in EVERY_TOPIC if each != OFFSETS_TOPIC]
    request = made(topics=[made.OffsetForLeaderTopic(topic=each, partitions=[part]) for each in names])
    if version >= 3:
        request.replica_id = -1
    return request


@question("DeleteRecords")
def _up_to_the_first(made: Any, version: int, _: World) -> Any:
    part = made.DeleteRecordsPartition(partition_index=0, offset=0)
    names = [each for each in EVERY_TOPIC if each != OFFSETS_TOPIC]
    return made(topics=[made.DeleteRecordsTopic(name=each, partitions=[part]) for each in names], timeout_ms=1_000)


@question("DescribeProducers")
def _producers_of_every_topic(made: Any, version: int, _: World) -> Any:
    names = [each for each in EVERY_TOPIC if each != OFFSETS_TOPIC]
    return made(topics=[made.TopicRequest(name=each, partition_indexes=[0]) for each in names])


@question("InitProducerId")
def _without_a_transactional_id(made: Any, version: int, _: World) -> Any:
    return made(transactional_id=None, transaction_timeout_ms=60_000)


for _id in TRANSACTIONAL_IDS:

    def _with_a_transactional_id(made: Any, version: int, _: World, name: str = _id) -> Any:
        return made(transactional_id=name, transaction_timeout_ms=60_000)

    _with_a_transactional_id.__name__ = f"_with_the_transactional_id_{_id}"
    question("InitProducerId")(_with_a_transactional_id)


def _each_transaction(*apis: str, until: int = 99) -> Callable[[Callable[[Any, int, str], Any]], None]:
    """A question about a transactional id, about each of three. No producer has the id that is named."""

    def add(make: Callable[[Any, int, str], Any]) -> None:
        for each in TRANSACTIONAL_IDS if TRANSACTIONS else ():

            def of_transaction(made: Any, version: int, _: World, name: str = each) -> Any:
                return make(made, version, name)

            of_transaction.__name__ = f"{make.__name__}_of_{each}"
            question(*apis, until=until)(of_transaction)

    return add


@_each_transaction("AddPartitionsToTxn", until=3)
def _every_partition(made: Any, version: int, name: str) -> Any:
    return _added(made, name, *TOPICS, "void")


@_each_transaction("AddPartitionsToTxn", until=3)
def _two_partitions(made: Any, version: int, name: str) -> Any:
    return _added(made, name, "own", "pre-one")


def _added(made: Any, name: str, *topics: str) -> Any:
    return made(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=NOBODYS_PRODUCER,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[made.AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in topics],
    )


@question("AddPartitionsToTxn", since=4 if TRANSACTIONS else 99)
def _as_a_leader(made: Any, version: int, _: World) -> Any:
    return made(
        transactions=[
            made.AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=NOBODYS_PRODUCER,
                producer_epoch=0,
                verify_only=verify_only,
                topics=[made.AddPartitionsToTxnTopic(name="own", partitions=[0])],
            )
            for name, verify_only in (("own", True), ("pre-one", False), ("other", True))
        ]
    )


@_each_transaction("AddOffsetsToTxn")
def _offsets(made: Any, version: int, name: str) -> Any:
    return made(transactional_id=name, producer_id=NOBODYS_PRODUCER, producer_epoch=0, group_id="own")


@_each_transaction("AddOffsetsToTxn")
def _offsets_of_another_group(made: Any, version: int, name: str) -> Any:
    return made(transactional_id=name, producer_id=NOBODYS_PRODUCER, producer_epoch=0, group_id="pre-one")


@_each_transaction("EndTxn")
def _end(made: Any, version: int, name: str) -> Any:
    return made(transactional_id=name, producer_id=NOBODYS_PRODUCER, producer_epoch=0, committed=True)


for _group in ("own", "pre-one", "other"):

    def _offsets_of_a_group(made: Any, version: int, name: str, group: str = _group) -> Any:
        part = made.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=COMMITTED, committed_metadata=""
        )
        return made(
            transactional_id=name,
            group_id=group,
            producer_id=NOBODYS_PRODUCER,
            producer_epoch=0,
            topics=[made.TxnOffsetCommitRequestTopic(name=topic, partitions=[part]) for topic in (*TOPICS, "void")],
        )

    _offsets_of_a_group.__name__ = f"_offsets_of_the_group_{_group}"
    _each_transaction("TxnOffsetCommit")(_offsets_of_a_group)


@question("WriteTxnMarkers", since=0 if TRANSACTIONS else 99)
def _where_nobody_wrote(made: Any, version: int, _: World) -> Any:
    """In a topic that there is not, so that nothing is written."""
    return made(
        markers=[
            made.WritableTxnMarker(
                producer_id=NOBODYS_PRODUCER,
                producer_epoch=0,
                transaction_result=False,
                topics=[made.WritableTxnMarkerTopic(name="void", partition_indexes=[0])],
                coordinator_epoch=0,
            )
        ]
    )


@question("DescribeTransactions", since=0 if TRANSACTIONS else 99)
def _described_transactions(made: Any, version: int, _: World) -> Any:
    return made(transactional_ids=[*TRANSACTIONAL_IDS, "void"])


@question("ListTransactions", since=0 if TRANSACTIONS else 99)
def _listed_transactions(made: Any, version: int, _: World) -> Any:
    return made(state_filters=[], producer_id_filters=[])


# -- metadata


def _bits(request: Any, version: int) -> Any:
    if version >= 8:
        request.include_topic_authorized_operations = True
    if 8 <= version <= 10:
        request.include_cluster_authorized_operations = True
    return request


@question("Metadata")
def _of_all_topics(made: Any, version: int, _: World) -> Any:
    return _bits(made(topics=None if version else []), version)


@question("Metadata")
def _of_named_topics(made: Any, version: int, _: World) -> Any:
    names = [*TOPICS, OFFSETS_TOPIC]
    if version >= 4:
        names += [*MISSING, METADATA_TOPIC, PENSTOCK_TOPIC]
    request = made(topics=[made.MetadataRequestTopic(name=each) for each in names])
    if version >= 4:
        request.allow_auto_topic_creation = False
    return _bits(request, version)


@question("Metadata", few=True)
def _that_makes_topics(made: Any, version: int, _: World) -> Any:
    return _bits(made(topics=[made.MetadataRequestTopic(name=each) for each in ("own", *MISSING)]), version)


@question("Metadata", since=12)
def _by_ids(made: Any, version: int, world: World) -> Any:
    ids = [*world.topic_ids.values(), STRANGER]
    return _bits(made(topics=[made.MetadataRequestTopic(topic_id=each, name=None) for each in ids]), version)


@question("DescribeTopicPartitions")
def _of_named(made: Any, version: int, _: World) -> Any:
    return made(topics=[made.TopicRequest(name=each) for each in EVERY_TOPIC])


@question("DescribeTopicPartitions")
def _of_all(made: Any, version: int, _: World) -> Any:
    return made(topics=[])


@question("DescribeCluster")
def _with_bits(made: Any, version: int, _: World) -> Any:
    return made(include_cluster_authorized_operations=True)


@question("DescribeCluster", since=1)
def _of_controllers(made: Any, version: int, _: World) -> Any:
    return made(include_cluster_authorized_operations=True, endpoint_type=2)


# -- topics


@question("CreateTopics")
def _only_validated(made: Any, version: int, _: World) -> Any:
    names = (*TOPICS, *MISSING)
    topics = [made.CreatableTopic(name=each, num_partitions=1, replication_factor=1) for each in names]
    return made(topics=topics, timeout_ms=1_000, validate_only=True)


@question("DeleteTopics")
def _that_are_not_there(made: Any, version: int, _: World) -> Any:
    if version < 6:
        return made(topic_names=[*MISSING], timeout_ms=1_000)
    states = [made.DeleteTopicState(name=each, topic_id=ZERO_UUID) for each in MISSING]
    return made(topics=[*states, made.DeleteTopicState(name=None, topic_id=STRANGER)], timeout_ms=1_000)


@question("DeleteTopics", few=True)
def _that_are_there(made: Any, version: int, _: World) -> Any:
    if version < 6:
        return made(topic_names=[*TOPICS], timeout_ms=10_000)
    return made(topics=[made.DeleteTopicState(name=each, topic_id=ZERO_UUID) for each in TOPICS], timeout_ms=10_000)


@question("DeleteTopics", since=6, few=True)
def _ids_that_are_there(made: Any, version: int, world: World) -> Any:
    ids = world.topic_ids.values()
    return made(topics=[made.DeleteTopicState(name=None, topic_id=each) for each in ids], timeout_ms=10_000)


@question("CreatePartitions")
def _more_partitions(made: Any, version: int, _: World) -> Any:
    names = (*TOPICS, *MISSING)
    topics = [made.CreatePartitionsTopic(name=each, count=2, assignments=None) for each in names]
    return made(topics=topics, timeout_ms=1_000, validate_only=True)


@question("ElectLeaders")
def _of_these(made: Any, version: int, _: World) -> Any:
    names = (*TOPICS, *MISSING)
    return made(topic_partitions=[made.TopicPartitions(topic=each, partitions=[0]) for each in names], timeout_ms=1_000)


@question("ElectLeaders")
def _everywhere(made: Any, version: int, _: World) -> Any:
    return made(topic_partitions=None, timeout_ms=1_000)


@question("AlterPartitionReassignments")
def _that_are_none(made: Any, version: int, _: World) -> Any:
    part = made.ReassignablePartition(partition_index=0, replicas=None)
    names = (*TOPICS, *MISSING)
    return made(topics=[made.ReassignableTopic(name=each, partitions=[part]) for each in names], timeout_ms=1_000)


@question("ListPartitionReassignments")
def _all_reassignments(made: Any, version: int, _: World) -> Any:
    return made(topics=None, timeout_ms=1_000)


@question("DescribeLogDirs")
def _all_directories(made: Any, version: int, _: World) -> Any:
    return made(topics=[made.DescribableLogDirTopic(topic=each, partitions=[0]) for each in (*TOPICS, *MISSING)])


@question("AlterReplicaLogDirs")
def _to_nowhere(made: Any, version: int, _: World) -> Any:
    moved = [made.AlterReplicaLogDirTopic(name=each, partitions=[0]) for each in (*TOPICS, *MISSING)]
    return made(dirs=[made.AlterReplicaLogDir(path="/elsewhere", topics=moved)])


# -- groups


@question("FindCoordinator")
def _of_groups(made: Any, version: int, _: World) -> Any:
    if version < 4:
        return made(key="own")
    return made(key_type=0, coordinator_keys=[*EVERY_GROUP])


@question("FindCoordinator", until=3)
def _of_another_group(made: Any, version: int, _: World) -> Any:
    return made(key="pre-one")


@question("FindCoordinator", since=1 if TRANSACTIONS else 99)
def _of_transactions(made: Any, version: int, _: World) -> Any:
    if version < 4:
        return made(key_type=1, key="own")
    return made(key_type=1, coordinator_keys=[*TRANSACTIONAL_IDS])


@question("FindCoordinator", since=6)
def _of_shares(made: Any, version: int, _: World) -> Any:
    return made(key_type=2, coordinator_keys=[f"own:{STRANGER}:0"])


def _each_group(*apis: str) -> Callable[[Callable[[Any, int, str], Any]], None]:
    """A question about one group, about each of three."""

    def add(make: Callable[[Any, int, str], Any]) -> None:
        for group in ("own", "pre-one", "other", "void"):

            def of_group(made: Any, version: int, _: World, group: str = group) -> Any:
                return make(made, version, group)

            of_group.__name__ = f"{make.__name__}_{group}"
            question(*apis)(of_group)

    return add


@_each_group("JoinGroup")
def _join(made: Any, version: int, group: str) -> Any:
    request = made(
        group_id=group,
        session_timeout_ms=LONG_MS,
        member_id="nobody",
        protocol_type="consumer",
        protocols=[made.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    if version >= 1:
        request.rebalance_timeout_ms = LONG_MS
    return request


@_each_group("Heartbeat")
def _as_nobody_of(made: Any, version: int, group: str) -> Any:
    return made(group_id=group, generation_id=1, member_id="nobody")


@_each_group("SyncGroup")
def _sync_with(made: Any, version: int, group: str) -> Any:
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    return made(group_id=group, generation_id=1, member_id="nobody", **named)


@question("SyncGroup", since=5)
def _without_a_protocol(made: Any, version: int, _: World) -> Any:
    return made(group_id="own", generation_id=1, member_id="nobody")


@_each_group("LeaveGroup")
def _leave(made: Any, version: int, group: str) -> Any:
    if version < 3:
        return made(group_id=group, member_id="nobody")
    return made(group_id=group, members=[made.MemberIdentity(member_id="nobody")])


@_each_group("ConsumerGroupHeartbeat")
def _beat_in(made: Any, version: int, group: str) -> Any:
    return made(group_id=group, member_id="nobody", member_epoch=5)


def _subscribing(*topics: str, group: str) -> Maker:
    def beat(made: Any, version: int, _: World) -> Any:
        return made(
            group_id=group,
            member_id="nobody",
            member_epoch=5,
            rebalance_timeout_ms=LONG_MS,
            subscribed_topic_names=[*topics],
            topic_partitions=[],
        )

    beat.__name__ = f"_{group}_subscribes_to_{'_and_'.join(topics)}"
    return beat


for _topics in (("own",), ("pre-one",), ("own", "other"), ("public",), ("void",), ("missing",), ("shut", "public")):
    question("ConsumerGroupHeartbeat")(_subscribing(*_topics, group="own"))
    question("ConsumerGroupHeartbeat")(_subscribing(*_topics, group="crowd"))


def _by_name_or_id(struct: Any, version: int, by_id_since: int, world: World, **said: Any) -> list[Any]:
    if version >= by_id_since:
        ids = [*world.topic_ids.values(), STRANGER]
        return [struct(topic_id=each, **said) for each in ids]
    return [struct(name=each, **said) for each in (*TOPICS, *MISSING)]


for _group in ("own", "pre-one", "other", "void", "crowd"):

    def _commit(made: Any, version: int, world: World, group: str = _group) -> Any:
        part = made.OffsetCommitRequestPartition(partition_index=0, committed_offset=COMMITTED, committed_metadata="")
        return made(
            group_id=group,
            topics=_by_name_or_id(made.OffsetCommitRequestTopic, version, 10, world, partitions=[part]),
        )

    _commit.__name__ = f"_in_{_group}"
    question("OffsetCommit")(_commit)

for _group in ("own", "pre-one", "other", "void"):

    def _offsets(made: Any, version: int, world: World, group: str = _group) -> Any:
        topics = _by_name_or_id(made.OffsetFetchRequestTopic, version, 10, world, partition_indexes=[0])
        return made(group_id=group, topics=topics)

    def _all_offsets(made: Any, version: int, _: World, group: str = _group) -> Any:
        return made(group_id=group, topics=None)

    _offsets.__name__, _all_offsets.__name__ = f"_of_{_group}", f"_all_of_{_group}"
    question("OffsetFetch", until=7)(_offsets)
    question("OffsetFetch", since=2, until=7)(_all_offsets)


@question("OffsetFetch", since=8)
def _of_every_group(made: Any, version: int, world: World) -> Any:
    topics = _by_name_or_id(made.OffsetFetchRequestTopics, version, 10, world, partition_indexes=[0])
    return made(groups=[made.OffsetFetchRequestGroup(group_id=each, topics=topics) for each in EVERY_GROUP])


@question("OffsetFetch", since=8)
def _all_of_every_group(made: Any, version: int, _: World) -> Any:
    return made(groups=[made.OffsetFetchRequestGroup(group_id=each, topics=None) for each in EVERY_GROUP])


@question("DescribeGroups")
def _every_group(made: Any, version: int, _: World) -> Any:
    request = made(groups=[*EVERY_GROUP])
    if version >= 3:
        request.include_authorized_operations = True
    return request


@question("ConsumerGroupDescribe")
def _every_crowd(made: Any, version: int, _: World) -> Any:
    return made(group_ids=[*EVERY_GROUP], include_authorized_operations=True)


@question("ListGroups")
def _all_groups(made: Any, version: int, _: World) -> Any:
    return made()


@question("DeleteGroups")
def _delete_every_group(made: Any, version: int, _: World) -> Any:
    return made(groups_names=[*EVERY_GROUP])


@_each_group("OffsetDelete")
def _offsets_of(made: Any, version: int, group: str) -> Any:
    part = made.OffsetDeleteRequestPartition(partition_index=0)
    names = (*TOPICS, *MISSING)
    return made(group_id=group, topics=[made.OffsetDeleteRequestTopic(name=each, partitions=[part]) for each in names])


# -- configs


def _named_resources() -> list[tuple[int, str, str]]:
    """Kind, name, and a config that each of the kind has."""
    found = [(TOPIC, name, "retention.ms") for name in (*TOPICS, *MISSING)]
    found += [(GROUP, name, "consumer.session.timeout.ms") for name in (*GROUPS, *MISSING)]
    return [
        *found,
        (BROKER, "1", "log.retention.ms"),
        (BROKER, "", "log.retention.ms"),
        (METRICS, "own", "interval.ms"),
    ]


@question("DescribeConfigs")
def _configs(made: Any, version: int, _: World) -> Any:
    resources = [
        made.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
        for kind, name, key in _named_resources()
    ]
    return made(resources=resources)


@question("DescribeConfigs")
def _levels_of_logging(made: Any, version: int, _: World) -> Any:
    wanted = made.DescribeConfigsResource(resource_type=LOGGER, resource_name="1", configuration_keys=["nobody's"])
    return made(resources=[wanted])


_VALUES = {TOPIC: "100000000", GROUP: "1700000", BROKER: "-1", METRICS: "60000"}


@question("AlterConfigs", "IncrementalAlterConfigs")
def _validated(made: Any, version: int, _: World) -> Any:
    resources = [
        made.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[made.AlterableConfig(name=key, value=_VALUES[kind])]
        )
        for kind, name, key in _named_resources()
    ]
    return made(resources=resources, validate_only=True)


@question("IncrementalAlterConfigs")
def _a_level_of_logging(made: Any, version: int, _: World) -> Any:
    level = made.AlterableConfig(name="nobody's", config_operation=0, value="INFO")
    return made(
        resources=[made.AlterConfigsResource(resource_type=LOGGER, resource_name="1", configs=[level])],
        validate_only=True,
    )


@question("ListConfigResources")
def _resources(made: Any, version: int, _: World) -> Any:
    return made()


# -- security


@question("DescribeAcls")
def _of_everybody(made: Any, version: int, _: World) -> Any:
    return made(
        resource_type_filter=2,
        resource_name_filter=None,
        pattern_type_filter=3,
        principal_filter="User:*",
        host_filter=None,
        operation=1,
        permission_type=1,
    )


@question("CreateAcls")
def _that_there_is(made: Any, version: int, _: World) -> Any:
    there = {"resource_type": 2, "resource_name": "public", "resource_pattern_type": 3, "principal": "User:*"}
    return made(creations=[made.AclCreation(**there, host="*", operation=3, permission_type=3)])


@question("DeleteAcls")
def _that_there_is_not(made: Any, version: int, _: World) -> Any:
    wanted = made.DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="nowhere",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return made(filters=[wanted])


@question("DescribeClientQuotas")
def _all_limits(made: Any, version: int, _: World) -> Any:
    return made(components=[], strict=False)


@question("AlterClientQuotas")
def _a_limit(made: Any, version: int, _: World) -> Any:
    entity = made.EntityData(entity_type="user", entity_name="own")
    limit = made.OpData(key="producer_byte_rate", value=1e9, remove=False)
    return made(entries=[made.EntryData(entity=[entity], ops=[limit])], validate_only=True)


@question("DescribeUserScramCredentials")
def _credentials(made: Any, version: int, _: World) -> Any:
    return made(users=[made.UserName(name="listed"), made.UserName(name="unlisted")])


@question("AlterUserScramCredentials")
def _delete_a_credential(made: Any, version: int, _: World) -> Any:
    return made(deletions=[made.ScramCredentialDeletion(name="unlisted", mechanism=1)], upsertions=[])


def _renewers(made: Any) -> list[Any]:
    return [made.CreatableRenewers(principal_type="User", principal_name="admin")]


@question("CreateDelegationToken")
def _of_my_own(made: Any, version: int, _: World) -> Any:
    request = made(renewers=_renewers(made), max_lifetime_ms=-1)
    if version >= 3:
        request.owner_principal_type = request.owner_principal_name = None
    return request


for _owner in ("own", "pre-one", "other", "void"):

    def _token_for(made: Any, version: int, _: World, owner: str = _owner) -> Any:
        return made(
            owner_principal_type="User",
            owner_principal_name=owner,
            renewers=_renewers(made),
            max_lifetime_ms=-1,
        )

    _token_for.__name__ = f"_for_{_owner}"
    question("CreateDelegationToken", since=3)(_token_for)


@question("RenewDelegationToken")
def _renew_the_token_of_own(made: Any, version: int, world: World) -> Any:
    return made(hmac=world.hmacs["own"], renew_period_ms=-1)


@question("ExpireDelegationToken")
def _end_the_token_of_own_later(made: Any, version: int, world: World) -> Any:
    return made(hmac=world.hmacs["own"], expiry_time_period_ms=86_400_000)


@question("DescribeDelegationToken")
def _all_tokens(made: Any, version: int, _: World) -> Any:
    return made(owners=None)


@question("DescribeDelegationToken")
def _tokens_of_owners(made: Any, version: int, _: World) -> Any:
    owner = made.DescribeDelegationTokenOwner
    return made(owners=[owner(principal_type="User", principal_name=each) for each in OWNERS])


# -- the cluster


@question("DescribeQuorum")
def _quorum(made: Any, version: int, _: World) -> Any:
    part = made.PartitionData(partition_index=0)
    return made(topics=[made.TopicData(topic_name=METADATA_TOPIC, partitions=[part])])


@question("UpdateFeatures")
def _an_unknown_feature(made: Any, version: int, _: World) -> Any:
    update = made.FeatureUpdateKey(feature="unheard.of", max_version_level=1)
    return made(feature_updates=[update])


@question("UnregisterBroker")
def _nobodys_broker(made: Any, version: int, _: World) -> Any:
    return made(broker_id=99)


@question("AddRaftVoter")
def _to_another_cluster(made: Any, version: int, _: World) -> Any:
    listener = made.Listener(name="CONTROLLER", host=HERE, port=9)
    return made(cluster_id="another", timeout_ms=1_000, voter_id=7, voter_directory_id=STRANGER, listeners=[listener])


@question("RemoveRaftVoter")
def _of_another_cluster(made: Any, version: int, _: World) -> Any:
    return made(cluster_id="another", voter_id=7, voter_directory_id=STRANGER)


# -- logins


@question("ApiVersions")
def _versions(made: Any, version: int, _: World) -> Any:
    return made(client_software_name="rights", client_software_version="1")


@question("SaslHandshake")
def _once_more(made: Any, version: int, _: World) -> Any:
    return made(mechanism="PLAIN")


@question("SaslAuthenticate")
def _without_a_handshake(made: Any, version: int, _: World) -> Any:
    return made(auth_bytes=b"\0own\0own")
