"""The answers to requests that a classic group holds back."""

from __future__ import annotations

from penstock.coordinators.decision import Answer, Decision
from penstock.coordinators.groups.classic.group import ClassicGroup
from penstock.coordinators.groups.classic.member import ClassicMember
from penstock.model.errors import ErrorCode
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse

PROTOCOL_NAME_NULLABLE_SINCE = 7


def joined_reply(group: ClassicGroup, member: ClassicMember, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """A place in the current generation; the leader hears of all members and what they said."""
    assert group.protocol is not None, "a generation with members has a protocol"
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.id,
        members=described_members(group) if member.id == group.leader else [],
    )


def described_members(group: ClassicGroup) -> list[JoinGroupResponse.JoinGroupResponseMember]:
    """All members with their metadata for the chosen protocol."""
    assert group.protocol is not None, "a generation with members has a protocol"
    return [
        JoinGroupResponse.JoinGroupResponseMember(
            member_id=member.id, group_instance_id=member.instance_id, metadata=member.metadata(group.protocol)
        )
        for member in group.members.values()
    ]


def refused_join(member_id: str, error: ErrorCode, version: int) -> JoinGroupResponse:
    """No place, for a member that may have been in the group before: no protocol is named where null can say so."""
    return JoinGroupResponse(
        error_code=error.code,
        member_id=member_id,
        protocol_name=None if version >= PROTOCOL_NAME_NULLABLE_SINCE else "",
    )


def answer_join(group: ClassicGroup, member: ClassicMember, reply: JoinGroupResponse, out: Decision) -> bool:
    """Answers the member's held back join; False when there is none."""
    token = group.release_join(member)
    if token is None:
        return False
    out.answers.append(Answer(token, reply))
    return True


def answer_sync(member: ClassicMember, reply: SyncGroupResponse, out: Decision) -> bool:
    """Answers the member's held back sync; False when there is none."""
    token, member.sync_token = member.sync_token, None
    if token is None:
        return False
    out.answers.append(Answer(token, reply))
    return True
