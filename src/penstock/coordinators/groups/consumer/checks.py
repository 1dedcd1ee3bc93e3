"""Whether a request may be served: what it must carry, who sends it, and at which epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.coordinators.groups.consumer.limits import assignor_names, size_max
from penstock.coordinators.groups.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Member,
    covers,
)
from penstock.model.errors import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REQUEST,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
    Refused,
)

if TYPE_CHECKING:
    from penstock.coordinators.groups.consumer.group import ConsumerGroup
    from penstock.coordinators.groups.settings import GroupSettings
    from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

# Since this version clients make their member ids themselves.
_MEMBER_ID_SINCE = 1


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, settings: GroupSettings) -> None:
    """Refused when the request cannot be meant."""
    epoch = request.member_epoch
    if version >= _MEMBER_ID_SINCE or epoch > 0 or epoch == LEAVE_EPOCH:
        _not_blank(request.member_id, "MemberId")
    _not_blank(request.group_id, "GroupId")
    _not_blank(request.instance_id, "InstanceId")
    _not_blank(request.rack_id, "RackId")
    if epoch == JOIN_EPOCH:
        _check_join(request)
    elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise Refused(INVALID_REQUEST, "InstanceId must be given by a static member that leaves for a while")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise Refused(INVALID_REQUEST, f"MemberEpoch {epoch} has no meaning")
    if request.server_assignor is not None:
        known = assignor_names(settings)
        if request.server_assignor not in known:
            words = f"ServerAssignor {request.server_assignor} is not supported, only {', '.join(known)}"
            raise Refused(UNSUPPORTED_ASSIGNOR, words)


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise Refused(INVALID_REQUEST, "RebalanceTimeoutMs must be given by a member that joins")
    if request.topic_partitions is None or request.topic_partitions:
        raise Refused(INVALID_REQUEST, "TopicPartitions must be empty for a member that joins")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise Refused(
            INVALID_REQUEST, "SubscribedTopicNames or SubscribedTopicRegex must be given by a member that joins"
        )


def _not_blank(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        raise Refused(INVALID_REQUEST, f"{name} must not be empty")


def check_room(group: ConsumerGroup, member_id: str, settings: GroupSettings) -> None:
    """Refused when the group is full and the member is not in it."""
    limit = size_max(settings)
    if len(group.members) >= limit and member_id not in group.members:
        raise Refused(GROUP_MAX_SIZE_REACHED, f"the consumer group has reached its limit of {limit} members")


def check_epoch(member: Member, request: ConsumerGroupHeartbeatRequest) -> None:
    """Refused unless the sender knows where it stands.

    A rejoin is always fine. The epoch before is fine too as long as the sender claims nothing that it does not have:
    the reply that told it the new one may have been lost.
    """
    epoch = request.member_epoch
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    known = f"than {member.epoch}, which the coordinator knows; it must give up all partitions and rejoin"
    if epoch > member.epoch:
        raise Refused(FENCED_MEMBER_EPOCH, f"member epoch {epoch} is higher {known}")
    claimed = request.topic_partitions
    if epoch != member.previous_epoch or claimed is None:
        raise Refused(FENCED_MEMBER_EPOCH, f"member epoch {epoch} is lower {known}")
    if not covers(member.assigned, ((topic.topic_id, topic.partitions) for topic in claimed)):
        raise Refused(FENCED_MEMBER_EPOCH, f"member epoch {epoch} is lower {known}")


def check_known(member: Member | None, member_id: str, group_id: str) -> Member:
    if member is None:
        raise Refused(UNKNOWN_MEMBER_ID, f"member {member_id} is not in group {group_id}")
    return member


def check_instance(member: Member | None, member_id: str, instance_id: str) -> Member:
    """Refused unless the sender is the one that holds its instance id."""
    if member is None:
        raise Refused(UNKNOWN_MEMBER_ID, f"instance id {instance_id} is unknown")
    if member.id != member_id:
        raise Refused(FENCED_INSTANCE_ID, f"instance id {instance_id} of member {member_id} is held by {member.id}")
    return member


def check_released(member: Member, member_id: str) -> None:
    """Refused unless the former holder of an instance id has said that it is gone for the moment."""
    if member.epoch != STATIC_LEAVE_EPOCH:
        words = f"member {member_id} cannot join: its instance id {member.instance_id} is held by {member.id}"
        raise Refused(UNRELEASED_INSTANCE_ID, words)
