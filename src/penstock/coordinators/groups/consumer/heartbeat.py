"""ConsumerGroupHeartbeat (68), versions 0-1: join, keep alive, report, leave.

A request carries all that changed and nothing else; a member that joins or lost track sends everything. The reply has
an assignment when the request was such a full one, or when the assignment has changed since.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.coordinators.decision import Caller, Decision, Moment, StateRecord
from penstock.coordinators.groups.consumer import checks, leave, migration, records, regexes, sessions, update
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.consumer.member import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    Member,
    Owned,
    same_partitions,
)
from penstock.coordinators.groups.deadlines import ConsumerDeadline
from penstock.model.errors import GROUP_ID_NOT_FOUND, Refused
from penstock.model.ids import Uuid
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from penstock.coordinators.groups.table import GroupTable


def decide_heartbeat(
    table: GroupTable, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Moment
) -> Decision:
    """Answers any heartbeat: of a member, for a new group, or for a classic group that is to be taken over."""
    steady = _steady(table, request, caller, now)
    if steady is not None:
        return steady
    decision = Decision()
    try:
        checks.check_request(request, caller.api_version, table.settings)
        if request.member_epoch < JOIN_EPOCH:
            return _leave(table, request, now)
        _heartbeat(table, request, caller, now, decision)
        return decision
    except Refused as refused:
        reply = ConsumerGroupHeartbeatResponse(error_code=refused.error.code, error_message=refused.why)
        # Members of a classic group that was about to be taken over have been let go and must hear of it.
        return Decision(reply=reply, answers=decision.answers)


def _steady(table: GroupTable, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Moment) -> Decision | None:
    """The heartbeat of a member that has all it shall have and nothing to say; None for any other.

    Nearly all heartbeats are such: this way is short on purpose.
    """
    group = table.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        return None
    member = group.members.get(request.member_id)
    if (
        member is None
        or member.epoch != request.member_epoch
        or member.state
        or member.epoch != group.epoch
        or group.epoch != group.target_epoch
        or group.metadata_stale
        or (group.regex_counts and regexes.refresh_due(table, group, group.regex_counts, now))
        or member.classic is not None
        or request.subscribed_topic_names is not None
        or request.subscribed_topic_regex is not None
        or request.topic_partitions is not None
        or request.rebalance_timeout_ms != -1
        or request.server_assignor is not None
        or request.rack_id is not None
        or request.instance_id != member.instance_id
        or caller.client_id != member.client_id
        or caller.client_host != member.client_host
    ):
        return None
    limits = group.limits(now)
    table.timers.set((ConsumerDeadline.SESSION, group.id, member.id), now.tick + limits.session_timeout_ms)
    reply = ConsumerGroupHeartbeatResponse(
        member_id=member.id, member_epoch=member.epoch, heartbeat_interval_ms=limits.heartbeat_interval_ms
    )
    return Decision(reply=reply)


def _heartbeat(
    table: GroupTable, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Moment, decision: Decision
) -> None:
    out = decision.records
    joins = request.member_epoch == JOIN_EPOCH
    group = _group(table, request, now, decision)
    checks.check_room(group, request.member_id, table.settings)
    member_id = request.member_id or table.new_id()
    before = _member(group, request, member_id, out)
    after = _updated(before, request, caller)
    outcome = update.note_change(table, group, before, after, now, out, caller.may_describe)
    claimed = request.topic_partitions
    reported = None if claimed is None else [(topic.topic_id, topic.partitions) for topic in claimed]
    after = update.follow_target(table, group, outcome, reported, now, out)
    limits = group.limits(now)
    sessions.arm_session(table, group.id, member_id, limits.session_timeout_ms, now)
    reply = ConsumerGroupHeartbeatResponse(
        member_id=member_id, member_epoch=after.epoch, heartbeat_interval_ms=limits.heartbeat_interval_ms
    )
    if joins or _is_full(request) or not same_partitions(before.assigned, after.assigned):
        reply.assignment = _assignment(after.assigned)
    decision.reply = reply


def _group(table: GroupTable, request: ConsumerGroupHeartbeatRequest, now: Moment, decision: Decision) -> ConsumerGroup:
    """The group; for a member that joins also a new one, or a classic one turned into a consumer group."""
    group = table.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if request.group_id in table.other_kinds:
        raise Refused(GROUP_ID_NOT_FOUND, f"group {request.group_id} is not a consumer group")
    if request.member_epoch != JOIN_EPOCH:
        raise Refused(GROUP_ID_NOT_FOUND, f"there is no consumer group {request.group_id}")
    if group is None:
        return ConsumerGroup(request.group_id, table)
    return migration.upgrade(table, group, now, decision)


def _member(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str, out: list[StateRecord]
) -> Member:
    """The member as it is known; a new one for a member that joins."""
    joins = request.member_epoch == JOIN_EPOCH
    instance_id = request.instance_id
    if instance_id is None:
        known = group.members.get(member_id)
        if known is None and joins:
            return Member(member_id)
        member = checks.check_known(known, member_id, group.id)
        checks.check_epoch(member, request)
        return member
    holder = group.static_member(instance_id)
    if not joins:
        member = checks.check_instance(holder, member_id, instance_id)
        checks.check_epoch(member, request)
        return member
    if holder is None:
        return group.members.get(member_id) or Member(member_id)
    if holder.classic is None:
        checks.check_released(holder, member_id)
    return update.take_place(group, holder, member_id, out)


def _updated(before: Member, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Member:
    """The member with what the request says; what it leaves out stays."""
    names, regex, timeout_ms = (
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.rebalance_timeout_ms,
    )
    return before._replace(
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=before.assignor if request.server_assignor is None else request.server_assignor,
        topics=before.topics if names is None else frozenset(names),
        regex=before.regex if regex is None else regex,
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=None,
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member sent everything, as it does when it is not sure what we know."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _assignment(owned: Owned) -> ConsumerGroupHeartbeatResponse.Assignment:
    topics: Iterable[Uuid] = sorted(owned)
    return ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=sorted(owned[topic_id]))
            for topic_id in topics
        ]
    )


def _leave(table: GroupTable, request: ConsumerGroupHeartbeatRequest, now: Moment) -> Decision:
    group = table.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        raise Refused(GROUP_ID_NOT_FOUND, f"there is no consumer group {request.group_id}")
    member_id, instance_id = request.member_id, request.instance_id
    reply = ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)
    if instance_id is None:
        member = checks.check_known(group.members.get(member_id), member_id, group.id)
    else:
        member = checks.check_instance(group.static_member(instance_id), member_id, instance_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            return Decision([records.current_record(group.id, update.static_leave(member))], reply)
    decision = leave.fence(table, group, [member], now)
    decision.reply = reply
    return decision
