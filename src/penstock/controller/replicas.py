"""Changes to existing partitions: brokers that come and go, AlterPartition, AssignReplicasToDirs, ElectLeaders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from penstock.controller.decision import Decision, TopicRules, World
from penstock.controller.elections import NO_CHANGE, Change, Election, plan_change
from penstock.controller.index import Key
from penstock.metadata.entities import RECOVERED, RECOVERING, PartitionImage, TopicImage
from penstock.metadata.features import METADATA_3_6_NO_EPOCH_BUMP, METADATA_3_7_DIRECTORIES
from penstock.metadata.image import merge
from penstock.metadata.records import VersionedRecord, version_of
from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NONE,
    NOT_CONTROLLER,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
    Refused,
)
from penstock.model.ids import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord
from penstock.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from penstock.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

Place = tuple[TopicImage, int]


def default_directory(world: World, broker_id: int) -> Uuid:
    """Where a new replica goes as far as the controller knows: the only directory, or the broker's choice."""
    broker = world.image.brokers.get(broker_id)
    if broker is None or not broker.log_dirs:
        return DIRECTORY_MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else DIRECTORY_UNASSIGNED


def change_of(
    world: World,
    topic: TopicImage,
    partition: PartitionImage,
    live: Callable[[int], bool] | None = None,
    rules: TopicRules | None = None,
) -> Change:
    """A change that asks for nothing yet, with what this cluster says about who may lead the partition.

    `live` overrules which brokers count as live; a replica whose directory is offline may not lead in any case.
    `rules` are those of the topic, if they are known already.
    """
    brokers = world.image.brokers

    def active(replica: int) -> bool:
        broker = brokers.get(replica)
        return broker is not None and broker.active

    alive = live or active

    def acceptable(replica: int) -> bool:
        broker = brokers.get(replica)
        return broker is not None and alive(replica) and broker.has_online(partition.directory_of(replica))

    rules = rules or world.rules(topic)
    level = world.image.metadata_version
    return Change(
        acceptable=acceptable,
        min_isr=rules.min_isr,
        elr_enabled=world.image.elr_enabled,
        election=Election.UNCLEAN if rules.unclean else Election.ONLINE,
        default_directory=lambda replica: default_directory(world, replica),
        bump_epoch_on_shrink=level < METADATA_3_6_NO_EPOCH_BUMP,
        tells_directories=level >= METADATA_3_7_DIRECTORIES,
    )


def places(world: World, keys: Iterable[Key]) -> Iterator[Place]:
    """The partitions behind keys of the index."""
    topics = world.image.topics
    for topic_id, index in keys:
        yield topics[topic_id], index


def membership_records(
    world: World,
    found: Iterable[Place],
    *,
    leaving: int | None = None,
    joining: int | None = None,
    lost: int | None = None,
) -> list[VersionedRecord]:
    """The changes to the found partitions when a broker goes, comes, or came back without its data.

    The image still shows the broker as it was, so `leaving` and `lost` never count as live and `joining` always does.
    """
    gone = {leaving, lost}

    def live(replica: int) -> bool:
        if replica in gone:
            return False
        return replica == joining or world.image.brokers[replica].active

    records: list[VersionedRecord] = []
    version = version_of(PartitionChangeRecord, world.image.metadata_version)
    last: TopicImage | None = None
    for topic, index in found:
        if topic is not last:
            last, rules = topic, world.rules(topic)
        partition = topic.partitions[index]
        change = change_of(world, topic, partition, live, rules)
        change.isr = tuple(each for each in partition.isr if each not in gone)
        if lost is not None:
            change.lost = frozenset({lost})
        record = plan_change(topic.id, index, partition, change)
        if record is not None:
            records.append((record, version))
    return records


def decide_alter_partition(world: World, request: AlterPartitionRequest) -> Decision:
    """AlterPartition: a leader reports who is in sync."""
    reply = AlterPartitionResponse()
    try:
        world.check_broker_epoch(request.broker_id, request.broker_epoch)
    except Refused as refused:
        reply.error_code = refused.error.code
        return Decision([], reply)
    records: list[VersionedRecord] = []
    altered: set[Key] = set()
    for asked in request.topics:
        answered = AlterPartitionResponse.TopicData(topic_id=asked.topic_id)
        reply.topics.append(answered)
        topic = world.image.topics.get(asked.topic_id)
        for wanted in asked.partitions:
            key = (asked.topic_id, wanted.partition_index)
            if key in altered:
                # The first change has moved the partition's epoch on.
                answered.partitions.append(_refused(wanted.partition_index, INVALID_UPDATE_VERSION))
                continue
            altered.add(key)
            answered.partitions.append(_alter_one(world, request.broker_id, topic, wanted, records))
    return Decision(records, reply, f"alter partitions led by broker {request.broker_id}")


def _refused(index: int, error: ErrorCode) -> AlterPartitionResponse.PartitionData:
    return AlterPartitionResponse.PartitionData(partition_index=index, error_code=error.code)


def _alter_one(
    world: World,
    broker_id: int,
    topic: TopicImage | None,
    wanted: AlterPartitionRequest.PartitionData,
    records: list[VersionedRecord],
) -> AlterPartitionResponse.PartitionData:
    index = wanted.partition_index
    partition = None if topic is None else topic.get(index)
    error = _alter_refusal(world, broker_id, topic, partition, wanted)
    if error is not NONE:
        return _refused(index, error)
    assert topic is not None
    assert partition is not None
    change = change_of(world, topic, partition)
    change.isr = tuple(broker for broker, _ in _members(wanted))
    change.recovery_state = wanted.leader_recovery_state
    record = plan_change(topic.id, index, partition, change)
    if record is not None:
        records.append(world.versioned(record))
        partition = merge(partition, record)
        if record.leader not in (NO_CHANGE, broker_id):
            # The change finished a reassignment and with it the asker's leadership: it has to look at the metadata.
            return _refused(index, NEW_LEADER_ELECTED)
    return AlterPartitionResponse.PartitionData(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _alter_refusal(
    world: World,
    broker_id: int,
    topic: TopicImage | None,
    partition: PartitionImage | None,
    wanted: AlterPartitionRequest.PartitionData,
) -> ErrorCode:
    """Why the change is not made, in the order Kafka looks; NONE when it is."""
    if topic is None:
        return UNKNOWN_TOPIC_ID
    if partition is None:
        return UNKNOWN_TOPIC_OR_PARTITION
    if wanted.leader_epoch > partition.leader_epoch or wanted.partition_epoch > partition.partition_epoch:
        return NOT_CONTROLLER
    if wanted.leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return INVALID_REQUEST
    if wanted.partition_epoch < partition.partition_epoch:
        return INVALID_UPDATE_VERSION
    isr = [broker for broker, _ in _members(wanted)]
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas) or partition.leader not in isr:
        return INVALID_REQUEST
    if wanted.leader_recovery_state not in (RECOVERED, RECOVERING):
        return INVALID_REQUEST
    if wanted.leader_recovery_state == RECOVERING and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        return INVALID_REQUEST
    return NONE if all(_may_be_in_sync(world, *member) for member in _members(wanted)) else INELIGIBLE_REPLICA


def _members(wanted: AlterPartitionRequest.PartitionData) -> list[tuple[int, int]]:
    """The wanted ISR as (broker, broker epoch), -1 where version 2 of the request does not say."""
    if wanted.new_isr_with_epochs:
        return [(each.broker_id, each.broker_epoch) for each in wanted.new_isr_with_epochs]
    return [(broker, -1) for broker in wanted.new_isr]


def _may_be_in_sync(world: World, broker_id: int, broker_epoch: int) -> bool:
    broker = world.image.brokers.get(broker_id)
    return broker is not None and broker.active and broker_epoch in (-1, broker.epoch)


def decide_assign_directories(world: World, request: AssignReplicasToDirsRequest) -> Decision:
    """AssignReplicasToDirs: a broker reports which directory it put which replica in."""
    reply = AssignReplicasToDirsResponse()
    try:
        world.check_broker_epoch(request.broker_id, request.broker_epoch)
    except Refused as refused:
        reply.error_code = refused.error.code
        return Decision([], reply)
    records: list[VersionedRecord] = []
    for asked_directory in request.directories:
        answer = AssignReplicasToDirsResponse.DirectoryData(id=asked_directory.id)
        reply.directories.append(answer)
        for asked_topic in asked_directory.topics:
            answered = AssignReplicasToDirsResponse.TopicData(topic_id=asked_topic.topic_id)
            answer.topics.append(answered)
            topic = world.image.topics.get(asked_topic.topic_id)
            for asked in asked_topic.partitions:
                error = _assign_one(world, request.broker_id, topic, asked.partition_index, asked_directory.id, records)
                answered.partitions.append(
                    AssignReplicasToDirsResponse.PartitionData(
                        partition_index=asked.partition_index, error_code=error.code
                    )
                )
    return Decision(records, reply)


def _assign_one(
    world: World,
    broker_id: int,
    topic: TopicImage | None,
    index: int,
    directory: Uuid,
    records: list[VersionedRecord],
) -> ErrorCode:
    if topic is None:
        return UNKNOWN_TOPIC_ID
    partition = topic.get(index)
    if partition is None:
        return UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return NOT_LEADER_OR_FOLLOWER
    placed = partition._replace(
        directories=tuple(
            directory if replica == broker_id else known
            for replica, known in zip(partition.replicas, partition.directories, strict=True)
        )
    )
    change = change_of(world, topic, placed)
    change.directories = {broker_id: directory}
    if not world.image.brokers[broker_id].has_online(directory):
        # The directory failed between the assignment and its report: the replica is gone from service.
        change.isr = tuple(each for each in partition.isr if each != broker_id)
    record = plan_change(topic.id, index, partition, change)
    if record is not None:
        records.append(world.versioned(record))
    return NONE
