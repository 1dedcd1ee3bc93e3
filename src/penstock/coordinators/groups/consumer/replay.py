"""Takes in the records of consumer groups: the only place where what is durable of them changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.coordinators.groups.consumer import sessions
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.consumer.member import (
    LEAVE_EPOCH,
    NOTHING,
    ClassicMetadata,
    Member,
    Owned,
    ResolvedRegex,
)
from penstock.protocol.disk import consumer_group_records as stored

if TYPE_CHECKING:
    from penstock.coordinators.groups.table import GroupTable


def apply(table: GroupTable, key: Any, value: Any) -> bool:
    """The same for a record of the log and for one that was just decided; False for other kinds of records.

    A compacted log may have lost any record that a later one replaces, so a tombstone of something unknown is nothing.
    """
    take_in = _APPLY.get(type(key))
    if take_in is None:
        return False
    group = _group(table, key.group_id, create=value is not None)
    if group is not None:
        take_in(group, key, value)
    return True


def _group(table: GroupTable, group_id: str, *, create: bool) -> ConsumerGroup | None:
    known = table.groups.get(group_id)
    if isinstance(known, ConsumerGroup) or not create:
        return known if isinstance(known, ConsumerGroup) else None
    # A classic group in its place held offsets alone or was empty: the decision that replaced it removed it first.
    group = table.groups[group_id] = ConsumerGroup(group_id, table)
    return group


def _metadata(
    group: ConsumerGroup, _key: stored.ConsumerGroupMetadataKey, value: stored.ConsumerGroupMetadataValue | None
) -> None:
    if value is None:
        for member_id in group.members:
            sessions.cancel_all(group.table, group.id, member_id)
        del group.table.groups[group.id]
    else:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _partition_metadata(
    group: ConsumerGroup,
    _key: stored.ConsumerGroupPartitionMetadataKey,
    value: stored.ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata = value is not None


def _member(
    group: ConsumerGroup,
    key: stored.ConsumerGroupMemberMetadataKey,
    value: stored.ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    said = value.classic_member_metadata
    classic = None
    if said is not None:
        protocols = tuple((each.name, bytes(each.metadata)) for each in said.supported_protocols)
        classic = ClassicMetadata(said.session_timeout_ms, protocols)
    known = group.members.get(key.member_id) or Member(key.member_id)
    group.put_member(
        known._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=classic,
        )
    )


def _target_epoch(
    group: ConsumerGroup,
    _key: stored.ConsumerGroupTargetAssignmentMetadataKey,
    value: stored.ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    if value is None:
        group.target_epoch, group.target_timestamp = -1, 0
    else:
        group.target_epoch, group.target_timestamp = value.assignment_epoch, value.assignment_timestamp


def _target(
    group: ConsumerGroup,
    key: stored.ConsumerGroupTargetAssignmentMemberKey,
    value: stored.ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def _current(
    group: ConsumerGroup,
    key: stored.ConsumerGroupCurrentMemberAssignmentKey,
    value: stored.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    known = group.members.get(key.member_id)
    if value is not None:
        group.put_member(
            (known or Member(key.member_id))._replace(
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=value.state,
                assigned=_owned(value.assigned_partitions, value.member_epoch),
                revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
            )
        )
    elif known is not None:
        group.put_member(
            known._replace(epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NOTHING, revoking=NOTHING)
        )


def _owned(topics: list[stored.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions], epoch: int) -> Owned:
    """Releases before 4.3 did not say since when a partition is owned; the member's epoch is the latest it can be."""
    return {
        topic.topic_id: dict(zip(topic.partitions, topic.assignment_epochs, strict=True))
        if topic.assignment_epochs and len(topic.assignment_epochs) == len(topic.partitions)
        else dict.fromkeys(topic.partitions, epoch)
        for topic in topics
    }


def _regex(
    group: ConsumerGroup,
    key: stored.ConsumerGroupRegularExpressionKey,
    value: stored.ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.resolved.pop(key.regular_expression, None)
    else:
        group.resolved[key.regular_expression] = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)


_APPLY: dict[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    stored.ConsumerGroupMetadataKey: _metadata,
    stored.ConsumerGroupPartitionMetadataKey: _partition_metadata,
    stored.ConsumerGroupMemberMetadataKey: _member,
    stored.ConsumerGroupTargetAssignmentMetadataKey: _target_epoch,
    stored.ConsumerGroupTargetAssignmentMemberKey: _target,
    stored.ConsumerGroupCurrentMemberAssignmentKey: _current,
    stored.ConsumerGroupRegularExpressionKey: _regex,
}
