"""Heartbeat (12), versions 0-4, of classic groups."""

from __future__ import annotations

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.groups.classic.group import ClassicGroup, State
from penstock.model.errors import ILLEGAL_GENERATION, NONE, REBALANCE_IN_PROGRESS
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def decide_heartbeat(group: ClassicGroup, request: HeartbeatRequest, now: Moment) -> Decision:
    """Puts the end of the session off. While a rebalance is prepared the member hears that it should rejoin."""
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not NONE:
        return Decision(reply=HeartbeatResponse(error_code=error.code))
    if request.generation_id != group.generation:
        return Decision(reply=HeartbeatResponse(error_code=ILLEGAL_GENERATION.code))
    member = group.members[request.member_id]
    group.timers.set(member.session_key, now.tick + member.session_timeout_ms)
    if group.state is State.PREPARING:
        return Decision(reply=HeartbeatResponse(error_code=REBALANCE_IN_PROGRESS.code))
    return Decision(reply=HeartbeatResponse())
