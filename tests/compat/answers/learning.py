"""What answers teach about the world. Both brokers gave the same one, so ours is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.model.errors import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, MEMBER_ID_REQUIRED
from tests.compat.answers.world import ClassicGroup, ConsumerMember, World


def learn(world: World, api: str, request: Any, reply: Any) -> None:
    lesson = _LESSONS.get(api)
    if lesson is not None:
        lesson(world, request, reply)


def _fetched(world: World, request: Any, reply: Any) -> None:
    if reply.error_code in (FETCH_SESSION_ID_NOT_FOUND.code, INVALID_FETCH_SESSION_EPOCH.code):
        world.sessions.pop(request.session_id, None)
        return
    if request.session_id and request.session_id != reply.session_id:
        world.sessions.pop(request.session_id, None)
    if reply.session_id:
        world.sessions[reply.session_id] = request.session_epoch + 1


def _joined(world: World, request: Any, reply: Any) -> None:
    group = world.classic.get(request.group_id)
    if group is None:
        return
    if reply.error_code == 0:
        group.member, group.generation, group.pending = reply.member_id, reply.generation_id, ""
    elif reply.error_code == MEMBER_ID_REQUIRED.code:
        group.pending = reply.member_id


def _left(world: World, request: Any, reply: Any) -> None:
    group = world.classic.get(request.group_id)
    if group is None or reply.error_code:
        return
    gone = {each.member_id for each in reply.members if each.error_code == 0} or {request.member_id}
    if gone & {group.member, group.pending} - {""}:
        world.classic[request.group_id] = ClassicGroup()


def _deleted(world: World, _request: Any, reply: Any) -> None:
    for each in reply.results:
        if each.error_code == 0 and each.group_id in world.classic:
            world.classic[each.group_id] = ClassicGroup()


def _beaten(world: World, request: Any, reply: Any) -> None:
    member = world.consumer.get(request.group_id)
    if member is None or reply.error_code:
        return
    if reply.member_epoch < 0:
        world.consumer[request.group_id] = ConsumerMember()
        return
    member.member, member.epoch = reply.member_id or request.member_id, reply.member_epoch
    if reply.assignment is not None:
        member.owned = {each.topic_id: list(each.partitions) for each in reply.assignment.topic_partitions}


_LESSONS: dict[str, Callable[[World, Any, Any], None]] = {
    "Fetch": _fetched,
    "JoinGroup": _joined,
    "LeaveGroup": _left,
    "DeleteGroups": _deleted,
    "ConsumerGroupHeartbeat": _beaten,
}
