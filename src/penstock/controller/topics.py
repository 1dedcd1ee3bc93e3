"""CreateTopics and DeleteTopics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from penstock.controller.decision import Decision, MayDescribe, World
from penstock.controller.names import NameIndex, check_topic_name
from penstock.controller.placement import Load, place
from penstock.controller.replicas import default_directory
from penstock.metadata.entities import CONFIG_TOPIC, PartitionImage
from penstock.metadata.records import VersionedRecord
from penstock.metadata.snapshot import partition_record
from penstock.model.errors import (
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    POLICY_VIOLATION,
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
    TOPIC_DELETION_DISABLED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
    Refused,
)
from penstock.model.ids import METADATA_TOPIC, ZERO_UUID, Uuid, uuid_text
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_topics import RemoveTopicRecord, TopicRecord
from penstock.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.security.quotas.tokens import FREE, Mutations

PARTITIONS_MAX: Final = 10_000
"""How many partitions one request may make: Kafka's limit, and what a node can decide without a pause."""

DEFAULT: Final = -1


def decide_create(
    world: World,
    request: CreateTopicsRequest,
    may_describe: MayDescribe = lambda _name: True,
    mutations: Mutations = FREE,
) -> Decision:
    """CreateTopics: every topic is made or refused on its own; `validate_only` writes nothing and costs nothing."""
    times = Counter(topic.name for topic in request.topics)
    reply = CreateTopicsResponse()
    creation = _Creation(world, may_describe, FREE if request.validate_only else mutations)
    for topic in request.topics:
        if times[topic.name] > 1:
            if not any(result.name == topic.name for result in reply.topics):
                reply.topics.append(_refusal(topic.name, INVALID_REQUEST, "the topic stands twice in the request"))
            continue
        try:
            reply.topics.append(creation.create(topic))
        except Refused as refused:
            reply.topics.append(_refusal(topic.name, refused.error, refused.why))
    reply.throttle_time_ms = mutations.throttle_ms
    return Decision([] if request.validate_only else creation.records, reply, "create topics")


def _refusal(name: str, error: ErrorCode, why: str) -> CreateTopicsResponse.CreatableTopicResult:
    return CreateTopicsResponse.CreatableTopicResult(name=name, error_code=error.code, error_message=why or None)


class _Creation:
    """The topics of one request: what has been made of them so far."""

    def __init__(self, world: World, may_describe: MayDescribe, mutations: Mutations) -> None:
        self.world = world
        self._mutations = mutations
        self.records: list[VersionedRecord] = []
        self._may_describe = may_describe
        self._new_names = NameIndex()
        self._partitions = 0
        self._load = current_load(world)

    def create(self, topic: CreateTopicsRequest.CreatableTopic) -> CreateTopicsResponse.CreatableTopicResult:
        self._check_name(topic.name)
        configs = {each.name: each.value for each in topic.configs}
        self.world.topic_configs.check(configs)
        overrides = {name: value for name, value in configs.items() if value is not None}
        partitions = self._partitions_of(topic)
        self._count(len(partitions))
        self._mutations.take(len(partitions))
        topic_id = self.world.new_uuid()
        self._new_names.add(topic.name)
        self.records.append((TopicRecord(name=topic.name, topic_id=topic_id), 0))
        for name, value in overrides.items():
            record = ConfigRecord(resource_type=CONFIG_TOPIC, resource_name=topic.name, name=name, value=value)
            self.records.append((record, 0))
        for index, partition in enumerate(partitions):
            self.records.append(partition_record(topic_id, index, partition, self.world.image.metadata_version))
        return self._result(topic.name, topic_id, partitions, configs)

    def _check_name(self, name: str) -> None:
        if name == METADATA_TOPIC:
            raise Refused(INVALID_REQUEST, f"{METADATA_TOPIC} belongs to the cluster and cannot be created")
        check_topic_name(name)
        if self.world.image.topic(name) is not None:
            raise Refused(TOPIC_ALREADY_EXISTS, f"topic {name!r} exists already")
        other = self.world.names.collision(name) or self._new_names.collision(name)
        if other is not None:
            raise Refused(
                INVALID_TOPIC_EXCEPTION,
                f"topic {name!r} collides with {other!r}: '.' and '_' are the same in metric names",
            )

    def _count(self, partitions: int) -> None:
        if self._partitions + partitions > PARTITIONS_MAX:
            raise Refused(
                POLICY_VIOLATION, f"one request may create {PARTITIONS_MAX} partitions; ask for fewer at a time"
            )
        self._partitions += partitions

    def _partitions_of(self, topic: CreateTopicsRequest.CreatableTopic) -> list[PartitionImage]:
        settings = self.world.settings
        if topic.assignments:
            return _manual(self.world, topic)
        if topic.replication_factor == 0 or topic.replication_factor < DEFAULT:
            raise Refused(INVALID_REPLICATION_FACTOR, "the replication factor must be positive, or -1 for the default")
        if topic.num_partitions == 0 or topic.num_partitions < DEFAULT:
            raise Refused(INVALID_PARTITIONS, "the number of partitions must be positive, or -1 for the default")
        count = settings.num_partitions if topic.num_partitions == DEFAULT else topic.num_partitions
        factor = (
            settings.default_replication_factor if topic.replication_factor == DEFAULT else topic.replication_factor
        )
        if count > PARTITIONS_MAX:
            raise Refused(
                POLICY_VIOLATION, f"one request may create {PARTITIONS_MAX} partitions; ask for fewer at a time"
            )
        return placed_partitions(self.world, count, factor, self._load)

    def _result(
        self,
        name: str,
        topic_id: Uuid,
        partitions: list[PartitionImage],
        configs: dict[str, str | None],
    ) -> CreateTopicsResponse.CreatableTopicResult:
        result = CreateTopicsResponse.CreatableTopicResult(name=name, topic_id=topic_id, error_message=None)
        if not self._may_describe(name):
            result.topic_config_error_code = TOPIC_AUTHORIZATION_FAILED.code
            return result
        result.num_partitions = len(partitions)
        result.replication_factor = len(partitions[0].replicas)
        result.configs = self.world.topic_configs.described(configs)
        return result


def _manual(world: World, topic: CreateTopicsRequest.CreatableTopic) -> list[PartitionImage]:
    if topic.num_partitions != DEFAULT or topic.replication_factor != DEFAULT:
        raise Refused(
            INVALID_REQUEST, "with an assignment the number of partitions and the replication factor must both be -1"
        )
    by_index = {each.partition_index: each.broker_ids for each in topic.assignments}
    if len(by_index) != len(topic.assignments):
        raise Refused(INVALID_REPLICA_ASSIGNMENT, "a partition is assigned twice")
    if sorted(by_index) != list(range(len(by_index))):
        raise Refused(
            INVALID_REPLICA_ASSIGNMENT, "assigned partitions must be numbered 0, 1, 2 and so on without a gap"
        )
    factor = len(topic.assignments[0].broker_ids)
    return [assigned_partition(world, by_index[index], factor, index) for index in range(len(by_index))]


def assigned_partition(world: World, replicas: Sequence[int], replication_factor: int, index: int) -> PartitionImage:
    """A new partition with replicas that somebody chose; Refused with INVALID_REPLICA_ASSIGNMENT if it cannot be."""
    if not replicas:
        raise Refused(INVALID_REPLICA_ASSIGNMENT, f"partition {index} is assigned no replica")
    if len(set(replicas)) != len(replicas):
        raise Refused(INVALID_REPLICA_ASSIGNMENT, f"partition {index} is assigned a broker twice: {list(replicas)}")
    for replica in replicas:
        if replica not in world.image.brokers:
            raise Refused(
                INVALID_REPLICA_ASSIGNMENT, f"partition {index} is assigned broker {replica}, which is unknown"
            )
    if len(replicas) != replication_factor:
        raise Refused(
            INVALID_REPLICA_ASSIGNMENT,
            f"partition {index} is assigned {len(replicas)} replicas, others have {replication_factor}",
        )
    return new_partition(world, replicas, INVALID_REPLICA_ASSIGNMENT)


def current_load(world: World) -> Load:
    """What brokers have now; a request that makes several topics adds to it as it goes on."""
    return Load.of(world.index.preferred, world.index.holds)


def placed_partitions(world: World, count: int, replication_factor: int, load: Load) -> list[PartitionImage]:
    """New partitions where the controller thinks best; Refused with INVALID_REPLICATION_FACTOR if there is no way."""
    brokers = [broker for broker in world.image.brokers.values() if broker.takes_replicas]
    assignments = [tuple(each) for each in place(count, replication_factor, brokers, world.random, load)]
    # Partitions with the same replicas are born equal.
    born = {each: new_partition(world, each, INVALID_REPLICATION_FACTOR) for each in dict.fromkeys(assignments)}
    return [born[each] for each in assignments]


def new_partition(world: World, replicas: Sequence[int], error: ErrorCode) -> PartitionImage:
    """A partition at its birth: every live replica is in sync, the first of them leads."""
    isr = tuple(each for each in replicas if world.image.brokers[each].active)
    if not isr:
        raise Refused(error, f"brokers {list(replicas)} are all fenced or shutting down")
    return PartitionImage(
        replicas=tuple(replicas),
        directories=tuple(default_directory(world, each) for each in replicas),
        isr=isr,
        leader=isr[0],
    )


def decide_delete(
    world: World, request: DeleteTopicsRequest, *, api_version: int, mutations: Mutations = FREE
) -> Decision:
    """DeleteTopics: by name, or from version 6 by id."""
    asked: list[tuple[str | None, Uuid]] = [(name, ZERO_UUID) for name in request.topic_names]
    asked += [(each.name, each.topic_id) for each in request.topics]
    times = Counter(asked)
    reply, records, gone = DeleteTopicsResponse(), list[VersionedRecord](), set[Uuid]()
    for name, topic_id in asked:
        result = DeleteTopicsResponse.DeletableTopicResult(name=name, topic_id=topic_id)
        reply.responses.append(result)
        try:
            if not world.settings.delete_topic_enable:
                error = TOPIC_DELETION_DISABLED if api_version >= 3 else INVALID_REQUEST
                raise Refused(error, "topics cannot be deleted here: delete.topic.enable is false")
            if times[name, topic_id] > 1:
                raise Refused(INVALID_REQUEST, "the request names this topic twice")
            result.name, result.topic_id = _find(world, name, topic_id)
            if result.topic_id in gone:
                raise Refused(INVALID_REQUEST, "the request names this topic twice")
            mutations.take(len(world.image.topics[result.topic_id].partitions))
        except Refused as refused:
            result.error_code, result.error_message = refused.error.code, refused.why or None
            continue
        gone.add(result.topic_id)
        records.append((RemoveTopicRecord(topic_id=result.topic_id), 0))
    reply.throttle_time_ms = mutations.throttle_ms
    return Decision(records, reply, "delete topics")


def _find(world: World, name: str | None, topic_id: Uuid) -> tuple[str, Uuid]:
    if name is None and topic_id == ZERO_UUID:
        raise Refused(INVALID_REQUEST, "a topic must be named by its name or its id")
    if name is not None and topic_id != ZERO_UUID:
        raise Refused(INVALID_REQUEST, "a topic can be named by its name or by its id, not by both")
    topic = world.image.topics.get(topic_id) if name is None else world.image.topic(name)
    if topic is not None:
        return topic.name, topic.id
    if name is None:
        raise Refused(UNKNOWN_TOPIC_ID, f"there is no topic with the id {uuid_text(topic_id)}")
    raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
