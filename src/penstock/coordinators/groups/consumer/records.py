"""The records of consumer groups, in the versions and the order that Apache Kafka 4.3.1 writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.coordinators.decision import StateRecord
from penstock.coordinators.groups.consumer.member import ClassicMetadata, Member, Owned, ResolvedRegex
from penstock.protocol.disk.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from penstock.coordinators.groups.assignors import Target

_Value = ConsumerGroupMemberMetadataValue
_Current = ConsumerGroupCurrentMemberAssignmentValue


def group_record(group_id: str, epoch: int, metadata_hash: int) -> StateRecord:
    """The group's epoch, and the hash of the topics that it subscribes to."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return StateRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: Member) -> StateRecord:
    """What a member said of itself."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None if member.classic is None else _classic(member.classic),
    )
    return StateRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id), value)


def _classic(found: ClassicMetadata) -> ConsumerGroupMemberMetadataValue.ClassicMemberMetadata:
    protocols = [_Value.ClassicProtocol(name=name, metadata=metadata) for name, metadata in found.protocols]
    return _Value.ClassicMemberMetadata(session_timeout_ms=found.session_timeout_ms, supported_protocols=protocols)


def target_record(group_id: str, member_id: str, target: Target) -> StateRecord:
    """What a member shall have."""
    topics = [
        ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
        for topic_id in sorted(target)
    ]
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return StateRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp: int) -> StateRecord:
    """The epoch of the target, and the wall time at which it was computed."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
    return StateRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: Member) -> StateRecord:
    """What a member has, and what it must let go of."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_owned(member.assigned),
        partitions_pending_revocation=_owned(member.revoking),
    )
    return StateRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id), value)


def _owned(owned: Owned) -> list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    topics = []
    for topic_id in sorted(owned):
        epochs = owned[topic_id]
        partitions = sorted(epochs)
        topics.append(
            _Current.TopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=[epochs[partition] for partition in partitions],
            )
        )
    return topics


def regex_record(group_id: str, regex: str, found: ResolvedRegex) -> StateRecord:
    """The topics that a pattern matches."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(found.topics), version=found.version, timestamp=found.timestamp
    )
    return StateRecord(key, value)


def regex_tombstone(group_id: str, regex: str) -> StateRecord:
    """A pattern that nobody uses any more."""
    return StateRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def partition_metadata_tombstone(group_id: str) -> StateRecord:
    """Removes what releases before 4.1 stored in place of the hash."""
    return StateRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[StateRecord]:
    """One member, gone. Replay insists on this order."""
    return [
        StateRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        StateRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        StateRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(
    group_id: str, member_ids: Iterable[str], resolved: Mapping[str, ResolvedRegex]
) -> list[StateRecord]:
    """A whole group, gone, in the order that replay insists on."""
    members = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(current for current, _, _ in members),
        *(target for _, target, _ in members),
        StateRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(metadata for _, _, metadata in members),
        *(regex_tombstone(group_id, regex) for regex in sorted(resolved)),
        partition_metadata_tombstone(group_id),
        StateRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]
