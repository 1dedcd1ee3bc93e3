"""CreatePartitions: more partitions for topics that exist. There is no way back: keys would move."""

from __future__ import annotations

from collections import Counter

from penstock.controller.decision import Decision, World
from penstock.controller.placement import Load
from penstock.controller.topics import PARTITIONS_MAX, assigned_partition, current_load, placed_partitions
from penstock.metadata.entities import PartitionImage, TopicImage
from penstock.metadata.records import VersionedRecord
from penstock.metadata.snapshot import partition_record
from penstock.model.errors import (
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST,
    POLICY_VIOLATION,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
)
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from penstock.security.quotas.tokens import FREE, Mutations


def decide_create_partitions(world: World, request: CreatePartitionsRequest, mutations: Mutations = FREE) -> Decision:
    """CreatePartitions: `count` is the new total; `validate_only` writes nothing and costs nothing."""
    charged = FREE if request.validate_only else mutations
    times = Counter(topic.name for topic in request.topics)
    reply, records, load = CreatePartitionsResponse(), list[VersionedRecord](), current_load(world)
    for wanted in request.topics:
        result = CreatePartitionsResponse.CreatePartitionsTopicResult(name=wanted.name)
        if times[wanted.name] > 1:
            if any(each.name == wanted.name for each in reply.results):
                continue
            result.error_code = INVALID_REQUEST.code
            result.error_message = "the topic stands twice in the request"
        else:
            try:
                added = _grow(world, wanted, PARTITIONS_MAX - len(records), load)
                charged.take(len(added))
                records += added
            except Refused as refused:
                result.error_code, result.error_message = refused.error.code, refused.why or None
        reply.results.append(result)
    reply.throttle_time_ms = mutations.throttle_ms
    return Decision([] if request.validate_only else records, reply, "create partitions")


def _grow(
    world: World, wanted: CreatePartitionsRequest.CreatePartitionsTopic, room: int, load: Load
) -> list[VersionedRecord]:
    topic = world.image.topic(wanted.name)
    if topic is None:
        raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {wanted.name!r}")
    first = len(topic.partitions)
    if wanted.count <= first:
        raise Refused(INVALID_PARTITIONS, f"topic {wanted.name!r} has {first} partitions; {wanted.count} is not more")
    if wanted.count - first > room:
        raise Refused(POLICY_VIOLATION, f"one request may create {PARTITIONS_MAX} partitions; ask for fewer at a time")
    added = _added(world, topic, wanted, load)
    level = world.image.metadata_version
    return [partition_record(topic.id, index, partition, level) for index, partition in enumerate(added, start=first)]


def _added(
    world: World, topic: TopicImage, wanted: CreatePartitionsRequest.CreatePartitionsTopic, load: Load
) -> list[PartitionImage]:
    # While the first partition moves it has more replicas than it will have: new ones shall be like it will be.
    first, factor = len(topic.partitions), len(topic.partitions[0].target_replicas)
    if wanted.assignments is None:
        return placed_partitions(world, wanted.count - first, factor, load)
    if len(wanted.assignments) != wanted.count - first:
        raise Refused(
            INVALID_REPLICA_ASSIGNMENT,
            f"{wanted.count - first} new partitions need as many assignments, {len(wanted.assignments)} given",
        )
    return [
        assigned_partition(world, each.broker_ids, factor, index)
        for index, each in enumerate(wanted.assignments, start=first)
    ]
