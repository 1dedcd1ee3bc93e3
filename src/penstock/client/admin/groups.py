"""Groups: list, describe (classic and consumer alike), delete, remove members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.client.admin.session import Results, Session, check, transient, unsupported
from penstock.client.errors import ClientError, refusal
from penstock.model.errors import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, UNKNOWN_MEMBER_ID
from penstock.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest
from penstock.protocol.messages.list_groups import ListGroupsRequest

REMOVED = "removed by an administrator"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """`type` is classic, consumer, share or streams; state and type are "" where the broker is too old to tell."""

    id: str
    protocol_type: str
    state: str
    type: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """A member and the partitions it has; `epoch` and `target` are the consumer protocol's (-1, None for classic)."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    epoch: int
    subscription: list[str]
    pattern: str | None
    assignment: dict[str, list[int]]
    target: dict[str, list[int]] | None = None


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group. `assignor` is what its members agreed on or what the broker uses; epochs are -1 if it is classic."""

    id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: int
    epoch: int
    assignment_epoch: int
    members: list[MemberInfo]


async def list_groups(session: Session, states: Iterable[str], types: Iterable[str]) -> list[GroupListing]:
    """The groups of all brokers; each knows only those that it coordinates."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))

    async def ask(node: int) -> list[GroupListing]:
        reply = await session.broker(node, request)
        check(reply.error_code, None, f"the groups of broker {node}")
        for group in reply.groups:  # whoever lists many groups asks about each of them next
            session.view.learn_coordinator(group.group_id, node)
        return [GroupListing(g.group_id, g.protocol_type, g.group_state, g.group_type, node) for g in reply.groups]

    listed = (await session.by_broker(None, ask)).checked()
    found = {group.id: group for groups in listed.values() for group in groups}
    return [found[group_id] for group_id in sorted(found)]


async def describe_groups(session: Session, group_ids: Iterable[str]) -> Results[str, GroupInfo]:
    """Asks as for consumer groups first; a broker refuses that for classic ones and is asked for those again.

    A group may change its kind in between and be missed both times; so what is not found is asked for once more.
    """

    async def ask(node: int, ids: list[str]) -> Mapping[str, GroupInfo | ClientError]:
        outcomes = await _consumer_groups(session, node, ids)
        classic = [group_id for group_id in ids if group_id not in outcomes]
        if classic:
            reply = await session.broker(node, DescribeGroupsRequest(groups=classic))
            outcomes.update({group.group_id: _classic(group, node) for group in reply.groups})
        missing = [group_id for group_id in classic if _is_missing(outcomes.get(group_id))]
        if missing:
            outcomes.update(await _consumer_groups(session, node, missing))
        return outcomes

    return await session.by_coordinator(group_ids, ask)


async def _consumer_groups(session: Session, node: int, ids: list[str]) -> dict[str, GroupInfo | ClientError]:
    """Those that are consumer groups, or of which the broker cannot tell now; none from a broker that knows no such."""
    try:
        reply = await session.broker(node, ConsumerGroupDescribeRequest(group_ids=ids))
    except ClientError as failure:
        if not unsupported(failure):
            raise
        return {}
    outcomes: dict[str, GroupInfo | ClientError] = {}
    for group in reply.groups:
        if not group.error_code:
            outcomes[group.group_id] = _consumer(group, node)
        elif transient(refused := _refused(group.error_code, group.error_message, group.group_id)):
            outcomes[group.group_id] = refused
    return outcomes


def _is_missing(outcome: GroupInfo | ClientError | None) -> bool:
    return isinstance(outcome, ClientError) and outcome.error is GROUP_ID_NOT_FOUND


async def delete_groups(session: Session, group_ids: Iterable[str]) -> Results[str, None]:
    async def ask(node: int, ids: list[str]) -> Mapping[str, ClientError | None]:
        reply = await session.broker(node, DeleteGroupsRequest(groups_names=ids))
        return {
            gone.group_id: _refused(gone.error_code, None, gone.group_id) if gone.error_code else None
            for gone in reply.results
        }

    return await session.by_coordinator(group_ids, ask)


async def remove_members(
    session: Session, group_id: str, members: Iterable[str], instances: Iterable[str], reason: str
) -> Results[str, None]:
    """Removes members by id and static ones by instance id; their partitions go to the others."""
    leaving = [
        *(LeaveGroupRequest.MemberIdentity(member_id=member, reason=reason) for member in members),
        *(
            LeaveGroupRequest.MemberIdentity(member_id="", group_instance_id=instance, reason=reason)
            for instance in instances
        ),
    ]
    names = {(m.member_id, m.group_instance_id): m.group_instance_id or m.member_id for m in leaving}

    async def call() -> Results[str, None]:
        try:
            reply = await session.coordinator(group_id, LeaveGroupRequest(group_id=group_id, members=leaving))
            if reply.error_code:
                raise _refused(reply.error_code, None, group_id)
        except ClientError:
            session.view.forget_coordinator(group_id)
            raise
        results: Results[str, None] = Results()
        for member in reply.members:
            name = (
                names.get((member.member_id, member.group_instance_id)) or member.group_instance_id or member.member_id
            )
            if member.error_code == UNKNOWN_MEMBER_ID.code:
                where = f"group {group_id!r}"
                results.failed[name] = refusal(member.error_code, f"it has no member {name!r}", where)
            elif member.error_code:
                results.failed[name] = refusal(member.error_code, None, f"member {name!r} of group {group_id!r}")
            else:
                results.done[name] = None
        return results

    return await session.patient(call)


def _refused(code: int, words: str | None, group_id: str) -> ClientError:
    if code == GROUP_ID_NOT_FOUND.code:
        return refusal(code, f"group {group_id!r} does not exist", "")
    if code == NON_EMPTY_GROUP.code:
        return refusal(code, f"group {group_id!r} has members; stop them first", "")
    return refusal(code, words or f"group {group_id!r} was refused", "")


def _consumer(group: ConsumerGroupDescribeResponse.DescribedGroup, node: int) -> GroupInfo:
    members = [
        MemberInfo(
            m.member_id,
            m.instance_id,
            m.client_id,
            m.client_host,
            m.rack_id,
            m.member_epoch,
            sorted(m.subscribed_topic_names),
            m.subscribed_topic_regex or None,
            _partitions(m.assignment),
            _partitions(m.target_assignment),
        )
        for m in sorted(group.members, key=lambda m: m.member_id)
    ]
    return GroupInfo(
        group.group_id,
        "consumer",
        group.group_state,
        "consumer",
        group.assignor_name,
        node,
        group.group_epoch,
        group.assignment_epoch,
        members,
    )


def _partitions(assignment: ConsumerGroupDescribeResponse.Assignment) -> dict[str, list[int]]:
    return {topic.topic_name: sorted(topic.partitions) for topic in assignment.topic_partitions}


def _classic(group: DescribeGroupsResponse.DescribedGroup, node: int) -> GroupInfo | ClientError:
    if group.error_code:
        return _refused(group.error_code, group.error_message, group.group_id)
    if group.group_state == "Dead" and not group.members:  # how brokers before version 6 say that there is none
        return _refused(GROUP_ID_NOT_FOUND.code, None, group.group_id)
    members = [_classic_member(m, group.protocol_type) for m in sorted(group.members, key=lambda m: m.member_id)]
    return GroupInfo(
        group.group_id, "classic", group.group_state, group.protocol_type, group.protocol_data, node, -1, -1, members
    )


def _classic_member(member: DescribeGroupsResponse.DescribedGroupMember, protocol_type: str) -> MemberInfo:
    subscription, assignment, rack = _decoded(member) if protocol_type == "consumer" else ([], {}, None)
    return MemberInfo(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        rack,
        -1,
        subscription,
        None,
        assignment,
    )


def _decoded(
    member: DescribeGroupsResponse.DescribedGroupMember,
) -> tuple[list[str], dict[str, list[int]], str | None]:
    """What a classic consumer said in its own bytes; other clients may say something else, which is left out."""
    from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
    from penstock.protocol.wire import Malformed

    try:
        told: Any = _versioned(ConsumerProtocolSubscription, bytes(member.member_metadata))
        given: Any = _versioned(ConsumerProtocolAssignment, bytes(member.member_assignment))
    except Malformed:
        return [], {}, None
    assignment = {t.topic: sorted(t.partitions) for t in given.assigned_partitions} if given else {}
    return (sorted(told.topics), assignment, told.rack_id) if told else ([], assignment, None)


def _versioned(kind: type[Any], data: bytes) -> Any:
    """A message behind the int16 that is its version; None when there is nothing."""
    from penstock.protocol.codec import decode

    if len(data) < 2:
        return None
    newest = 3
    message, _ = decode(kind, min(int.from_bytes(data[:2], "big", signed=True), newest), data, 2)
    return message
