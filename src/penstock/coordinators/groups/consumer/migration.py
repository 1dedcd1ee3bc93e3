"""From the classic protocol to the consumer protocol and back, while members stay.

A classic group of consumers becomes a consumer group when the first member of the new protocol joins: its members go on
as members of the classic protocol inside it. When the last member of the new protocol leaves, it becomes a classic
group again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from penstock.coordinators.decision import Decision, Moment, StateRecord
from penstock.coordinators.groups.classic.answers import answer_join, answer_sync
from penstock.coordinators.groups.classic.group import ClassicGroup
from penstock.coordinators.groups.classic.member import ClassicMember
from penstock.coordinators.groups.classic.rebalance import arm_session as arm_classic_session
from penstock.coordinators.groups.classic.rebalance import prepare
from penstock.coordinators.groups.consumer import limits, records, sessions
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.consumer.member import ClassicMetadata, Member
from penstock.coordinators.groups.consumer.subscription import (
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from penstock.coordinators.groups.consumer.target import hash_without
from penstock.coordinators.groups.deadlines import ConsumerDeadline
from penstock.coordinators.groups.table import CONSUMER_PROTOCOL_TYPE
from penstock.model.errors import GROUP_ID_NOT_FOUND, REBALANCE_IN_PROGRESS, Refused
from penstock.model.ids import Uuid
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse
from penstock.protocol.wire import Malformed

if TYPE_CHECKING:
    from penstock.coordinators.groups.table import Group, GroupTable

REBALANCE: Final = "rebalance"


def upgrade(table: GroupTable, classic: Group, now: Moment, out: Decision) -> ConsumerGroup:
    """Turns a classic group into a consumer group that is not in the table yet. Refused when that may not be.

    An empty one just makes room. Members that wait for the rebalance under way are told of another one: it will come,
    because somebody joins.
    """
    if not isinstance(classic, ClassicGroup):
        raise Refused(GROUP_ID_NOT_FOUND, f"group {classic.id} is not a consumer group")
    if not classic.members:
        out.records += classic.tombstones()
        return ConsumerGroup(classic.id, table)
    _check_upgrade(table, classic)
    group = _converted(table, classic)
    for member in classic.members.values():
        join = JoinGroupResponse(error_code=REBALANCE_IN_PROGRESS.code, member_id=member.id)
        answer_join(classic, member, join, out)
        answer_sync(member, SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS.code), out)
        sessions.arm_session(table, group.id, member.id, member.session_timeout_ms, now)
    out.records += classic.tombstones()
    out.records += _all_records(group)
    return group


def _check_upgrade(table: GroupTable, classic: ClassicGroup) -> None:
    if not limits.may_upgrade(table.settings):
        raise Refused(GROUP_ID_NOT_FOUND, f"classic group {classic.id} cannot be upgraded: that is turned off")
    if not classic.of_consumers:
        raise Refused(
            GROUP_ID_NOT_FOUND, f"classic group {classic.id} cannot be upgraded: its members are no consumers"
        )
    if len(classic.members) > limits.size_max(table.settings):
        raise Refused(GROUP_ID_NOT_FOUND, f"classic group {classic.id} cannot be upgraded: it is too large")


def _converted(table: GroupTable, classic: ClassicGroup) -> ConsumerGroup:
    group = ConsumerGroup(classic.id, table)
    group.epoch = group.target_epoch = classic.generation
    try:
        for member in classic.members.values():
            converted = _member(table, classic, member)
            group.put_member(converted)
            group.targets[member.id] = {
                topic_id: frozenset(partitions) for topic_id, partitions in converted.assigned.items()
            }
    except Malformed as broken:
        raise Refused(GROUP_ID_NOT_FOUND, f"classic group {classic.id} cannot be upgraded: {broken}") from None
    group.metadata_hash, _ = hash_without(group, ())
    group.target_is_foreign = True
    return group


def _member(table: GroupTable, classic: ClassicGroup, member: ClassicMember) -> Member:
    """All members count as settled with what they have; those who were about to rejoin will do so."""
    ids = table.image.ids
    generation = classic.generation
    assigned: dict[Uuid, dict[int, int]] = {}
    if member.assignment:
        given = read_assignment(member.assignment)
        if given.user_data:
            words = (
                f"classic group {classic.id} cannot be upgraded: its assignor keeps data of its own with assignments"
            )
            raise Refused(GROUP_ID_NOT_FOUND, words)
        for topic in given.assigned_partitions:
            if topic.topic in ids and topic.partitions:
                assigned[ids[topic.topic]] = dict.fromkeys(topic.partitions, generation)
    # Before the first generation no protocol has been chosen; what a consumer subscribes to is the same in all.
    protocol = classic.protocol or member.protocols[0][0]
    said = read_subscription(member.metadata(protocol))
    return Member(
        member.id,
        epoch=generation,
        previous_epoch=generation,
        instance_id=member.instance_id,
        rack_id=said.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(said.topics),
        assigned=assigned,
        classic=ClassicMetadata(member.session_timeout_ms, tuple(member.protocols)),
    )


def _all_records(group: ConsumerGroup) -> list[StateRecord]:
    members = group.members.values()
    return [
        *(records.member_record(group.id, member) for member in members),
        records.group_record(group.id, group.epoch, group.metadata_hash),
        *(records.target_record(group.id, member.id, group.targets[member.id]) for member in members),
        records.target_epoch_record(group.id, group.target_epoch, group.target_timestamp),
        *(records.current_record(group.id, member) for member in members),
    ]


def can_downgrade(table: GroupTable, group: ConsumerGroup, leaving: Iterable[Member]) -> bool:
    """Whether only members of the classic protocol remain, at least one, and the group may go back to it."""
    gone = {member.id for member in leaving}
    remain = len(group.members) - len(gone)
    if not 0 < remain <= table.settings.group_size_max or not limits.may_downgrade(table.settings):
        return False
    return all(member.classic is not None or member.id in gone for member in group.members.values())


def can_downgrade_for(table: GroupTable, group: ConsumerGroup, replaced: Member) -> bool:
    """Whether the last member of the new protocol is this one, whose place a member of the classic one takes."""
    return (
        replaced.classic is None
        and group.classic_members == len(group.members) - 1
        and limits.may_downgrade(table.settings)
        and len(group.members) <= table.settings.group_size_max
    )


def downgrade(table: GroupTable, group: ConsumerGroup, leaving: Iterable[Member], now: Moment) -> list[StateRecord]:
    """Makes the group a classic one without these members. Those who remain will rebalance."""
    gone = {member.id for member in leaving}
    members = [member for member in group.members.values() if member.id not in gone]
    return _downgraded(table, group, list(group.members), members, {}, now, rebalance=True)


def downgrade_replacing(
    table: GroupTable, group: ConsumerGroup, replaced: Member, successor: Member, now: Moment, *, rebalance: bool
) -> list[StateRecord]:
    """The same when `successor` has taken the place of a static member; its records are there already."""
    members = [*(member for member in group.members.values() if member.id != replaced.id), successor]
    ids = [successor.id if member_id == replaced.id else member_id for member_id in group.members]
    return _downgraded(table, group, ids, members, {successor.id: replaced.id}, now, rebalance=rebalance)


def _downgraded(
    table: GroupTable,
    group: ConsumerGroup,
    ids: list[str],
    members: list[Member],
    targets_of: dict[str, str],
    now: Moment,
    *,
    rebalance: bool,
) -> list[StateRecord]:
    classic = ClassicGroup(group.id, table.timers, state_timestamp=now.wall)
    for member in members:
        assert member.classic is not None, "only members of the classic protocol remain"
        sessions.cancel_all(table, group.id, member.id)
        classic.add(_classic_member(group.id, member, member.classic), CONSUMER_PROTOCOL_TYPE)
    classic.generation = group.epoch
    classic.protocol = classic.choose_protocol()
    assignments = {}
    for classic_member in classic.members.values():
        target = group.targets.get(targets_of.get(classic_member.id, classic_member.id), {})
        version = version_of(classic_member.metadata(classic.protocol))
        assignments[classic_member.id] = write_assignment(target, version, table.image)
    table.timers.set((ConsumerDeadline.DOWNGRADED, group.id, REBALANCE if rebalance else ""), now.tick)
    return [*records.group_tombstones(group.id, ids, group.resolved), classic.record(assignments)]


def _classic_member(group_id: str, member: Member, said: ClassicMetadata) -> ClassicMember:
    return ClassicMember(
        group_id,
        member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=said.session_timeout_ms,
        protocols=said.protocols,
    )


def downgraded(table: GroupTable, group_id: str, follow_up: str, now: Moment) -> Decision | None:
    """The group is a classic one now: its members get sessions, and somebody's partitions are free."""
    group = table.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return None
    out = Decision()
    for member in group.members.values():
        if member.session_key not in table.timers:
            arm_classic_session(group, member, now)
    if follow_up == REBALANCE and group.members:
        prepare(table, group, now, out)
    return out
