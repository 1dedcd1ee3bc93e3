"""AlterPartitionReassignments and ListPartitionReassignments: partitions move from some brokers to others.

A move begins with a record that has old and new replicas together; those that come are `adding`, those that will go
are `removing`. It ends by itself when all who stay are in sync (`elections.plan_change`, mostly inside an
AlterPartition). Until then it can be replaced by another move, or be cancelled: whatever was asked for in between, a
cancelled partition is back at the replicas it had before the first move began.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.controller.decision import Decision, World
from penstock.controller.elections import Election, plan_change
from penstock.controller.replicas import change_of
from penstock.metadata.entities import PartitionImage, TopicImage
from penstock.metadata.image import merge
from penstock.metadata.records import VersionedRecord
from penstock.model.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
)
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord
from penstock.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from penstock.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Ongoing = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


def decide_alter_reassignments(world: World, request: AlterPartitionReassignmentsRequest) -> Decision:
    """AlterPartitionReassignments: each partition is moved, called back or refused on its own."""
    reply = AlterPartitionReassignmentsResponse(error_message=None)
    if request.topics:
        reply.allow_replication_factor_change = request.allow_replication_factor_change
    records: list[VersionedRecord] = []
    named: set[tuple[str, int]] = set()
    for topic in request.topics:
        answered = AlterPartitionReassignmentsResponse.ReassignableTopicResponse(name=topic.name)
        reply.responses.append(answered)
        for wanted in topic.partitions:
            index = wanted.partition_index
            result = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                partition_index=index, error_message=None
            )
            answered.partitions.append(result)
            try:
                if (topic.name, index) in named:
                    raise Refused(INVALID_REQUEST, f"{topic.name}-{index} stands twice in the request")
                named.add((topic.name, index))
                record = _decide_one(world, topic.name, wanted, request.allow_replication_factor_change)
            except Refused as refused:
                result.error_code, result.error_message = refused.error.code, refused.why or None
                continue
            if record is not None:
                records.append(world.versioned(record))
    return Decision(records, reply, "alter partition reassignments")


def _decide_one(
    world: World, name: str, wanted: AlterPartitionReassignmentsRequest.ReassignablePartition, may_resize: bool
) -> PartitionChangeRecord | None:
    topic = world.image.topic(name)
    partition = None if topic is None else topic.get(wanted.partition_index)
    if topic is None or partition is None:
        raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{wanted.partition_index}")
    if wanted.replicas is None:
        return _cancel(world, topic, wanted.partition_index, partition)
    return _move(world, topic, wanted.partition_index, partition, wanted.replicas, may_resize)


def _move(
    world: World, topic: TopicImage, index: int, old: PartitionImage, target: Sequence[int], may_resize: bool
) -> PartitionChangeRecord | None:
    _check_target(world, f"{topic.name}-{index}", old, target, may_resize)
    original = old.original_replicas
    removing = tuple(sorted(each for each in old.replicas if each not in target))
    change = change_of(world, topic, old)
    change.election = Election.ONLINE
    change.replicas = (*target, *removing)
    change.removing = removing
    # Also a replica that an earlier move added and this one drops is `adding`: it has to go when all is called back.
    change.adding = tuple(sorted(each for each in change.replicas if each not in original))
    return plan_change(topic.id, index, old, change)


def _check_target(world: World, where: str, old: PartitionImage, target: Sequence[int], may_resize: bool) -> None:
    if not target:
        raise Refused(INVALID_REPLICA_ASSIGNMENT, f"{where} is assigned no replica")
    if len(set(target)) != len(target):
        raise Refused(INVALID_REPLICA_ASSIGNMENT, f"{where} is assigned a broker twice: {list(target)}")
    for replica in target:
        if replica not in world.image.brokers:
            raise Refused(INVALID_REPLICA_ASSIGNMENT, f"{where} is assigned broker {replica}, which is not registered")
    factor = len(old.target_replicas)
    if not may_resize and len(target) != factor:
        raise Refused(
            INVALID_REPLICATION_FACTOR,
            f"{where} has a replication factor of {factor}, which {len(target)} replicas would change; "
            "the request does not allow that",
        )


def _cancel(world: World, topic: TopicImage, index: int, old: PartitionImage) -> PartitionChangeRecord | None:
    if not old.reassigning:
        raise Refused(NO_REASSIGNMENT_IN_PROGRESS, f"{topic.name}-{index} is not being moved")
    change = change_of(world, topic, old)
    change.replicas, change.adding, change.removing = old.original_replicas, (), ()
    change.isr = tuple(each for each in old.isr if each not in old.adding)
    record = plan_change(topic.id, index, old, change)
    have_the_records = {*old.isr, *old.elr}
    if not have_the_records or have_the_records & set(old.original_replicas):
        return record
    # Only replicas that would go again have every record: the others can only take over where losing some is allowed.
    if record is not None and world.unclean_allowed(topic.name) and merge(old, record).has_leader:
        return record
    raise Refused(
        INVALID_REPLICA_ASSIGNMENT,
        f"the move of {topic.name}-{index} cannot be cancelled: none of the replicas it had is in sync; "
        "bring one back, or let the move finish",
    )


def decide_list_reassignments(world: World, request: ListPartitionReassignmentsRequest) -> Decision:
    """ListPartitionReassignments: the moves under way, all or those of named partitions. Writes nothing."""
    reply = ListPartitionReassignmentsResponse(error_message=None)
    asked: dict[str, Iterable[int]] = {}
    if request.topics is None:
        found: dict[str, list[int]] = {}
        for topic_id, index in world.index.reassigning():
            found.setdefault(world.image.topics[topic_id].name, []).append(index)
        asked.update({name: sorted(indexes) for name, indexes in sorted(found.items())})
    else:
        asked.update({each.name: dict.fromkeys(each.partition_indexes) for each in request.topics})
    for name, indexes in asked.items():
        topic = world.image.topic(name)
        ongoing = [] if topic is None else [_ongoing(topic, index) for index in indexes]
        under_way = [each for each in ongoing if each is not None]
        if under_way:
            answered = ListPartitionReassignmentsResponse.OngoingTopicReassignment(name=name, partitions=under_way)
            reply.topics.append(answered)
    return Decision([], reply)


def _ongoing(topic: TopicImage, index: int) -> Ongoing | None:
    partition = topic.get(index)
    if partition is None or not partition.reassigning:
        return None
    return Ongoing(
        partition_index=index,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding),
        removing_replicas=list(partition.removing),
    )
