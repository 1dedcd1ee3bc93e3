"""BrokerHeartbeat: which state a broker is in, which it wants, which it gets. And brokers that are not heard of.

| a heartbeat says | fenced | unfenced | controlled shutdown |
|---|---|---|---|
| nothing more | unfenced, once it has caught up with its registration | unfenced | as below |
| it wants to be fenced | fenced | fenced | as below |
| it wants to stop | may stop | controlled shutdown while it leads anything; else may stop | as below |
| both | may stop | may stop | as below |
| its session runs out | | fenced | fenced |

In controlled shutdown a broker may stop when it leads nothing and everybody who is active has seen that; until then it
stays there, whatever it says. Once it was let go, or fenced on its way out, it may only stop: it comes back as a new
process. `SHUTDOWN_NOW` is no state but the answer "may stop"; the broker is fenced with it. The broker's own half of
the table is in `server/controller/lifecycle.py`.
"""

from __future__ import annotations

from enum import Enum

from penstock.controller.brokers import (
    cordon_records,
    directory_records,
    fence_records,
    leave_records,
    leaves_in_parts,
    shutdown_records,
    unfence_records,
)
from penstock.controller.decision import Decision, World
from penstock.metadata.entities import BrokerImage
from penstock.metadata.records import VersionedRecord
from penstock.model.errors import Refused
from penstock.model.ids import Offset
from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


class BrokerState(Enum):
    """Where a broker is in its life. SHUTDOWN_NOW is an answer: the broker is fenced and may stop."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def decide_heartbeat(world: World, request: BrokerHeartbeatRequest, *, now: float, next_offset: Offset) -> Decision:
    """BrokerHeartbeat: keeps a session alive and moves the broker from state to state."""
    try:
        world.check_broker_epoch(request.broker_id, request.broker_epoch)
    except Refused as refused:
        return Decision([], BrokerHeartbeatResponse(error_code=refused.error.code))
    broker = world.image.brokers[request.broker_id]
    session = world.sessions.touch(broker.id, now, Offset(request.current_metadata_offset))
    registered_at = world.registered_at.get(broker.id, Offset(broker.epoch))
    caught_up = request.current_metadata_offset >= registered_at
    state = _state(broker)
    granted = _next_state(world, broker, request, caught_up, session.dismissed)
    if granted is BrokerState.UNFENCED and any(each in broker.log_dirs for each in request.offline_log_dirs):
        # First everybody learns which directories are gone, or it would be elected for what it cannot read.
        granted = state
    records: list[VersionedRecord] = []
    if granted is not state or granted is BrokerState.CONTROLLED_SHUTDOWN:
        records += _transition(world, broker, granted)
    leaves = granted is not BrokerState.UNFENCED
    records += directory_records(world, broker, request.offline_log_dirs, leaves_anyway=leaves)
    records += cordon_records(world, broker, request.cordoned_log_dirs)
    stops = granted is BrokerState.CONTROLLED_SHUTDOWN
    if stops and session.shutdown_offset is None and not leaves_in_parts(world, broker.id):
        # The broker may go once everybody has seen that it leads nothing: once they have applied these records.
        session.shutdown_offset = Offset(next_offset + len(records) - 1)
    if granted is BrokerState.SHUTDOWN_NOW:
        # It said goodbye, so its successor need not wait for the session to run out.
        session.dismissed = True
    reply = BrokerHeartbeatResponse(
        is_caught_up=caught_up,
        is_fenced=granted in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=granted is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(records, reply, f"heartbeat of broker {broker.id}")


def decide_fencing(world: World, now: float) -> Decision:
    """Fences the broker that has been silent longest, if any session ran out. One at a time: the next one sees it.

    One that is in sync for many partitions leaves some of them first: should it be heard of in between, it has lost
    nothing but leaderships.
    """
    silent = world.sessions.silent_longest(live_brokers(world), now)
    if silent is None:
        return Decision([])
    broker = world.image.brokers[silent]
    if leaves_in_parts(world, silent):
        return Decision(leave_records(world, broker))
    return Decision(fence_records(world, broker), name=f"fence broker {silent}")


def live_brokers(world: World) -> list[int]:
    """Brokers that are not fenced: those whose silence matters."""
    return [broker.id for broker in world.image.brokers.values() if not broker.fenced]


def _state(broker: BrokerImage) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def _next_state(
    world: World, broker: BrokerImage, request: BrokerHeartbeatRequest, caught_up: bool, dismissed: bool
) -> BrokerState:
    match _state(broker):
        case BrokerState.FENCED:
            # Whoever has left everything to others comes back as a new process, not by changing its mind.
            if request.want_shut_down or broker.in_controlled_shutdown or dismissed:
                return BrokerState.SHUTDOWN_NOW
            return BrokerState.UNFENCED if caught_up and not request.want_fence else BrokerState.FENCED
        case BrokerState.UNFENCED:
            if request.want_fence:
                return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
            if not request.want_shut_down:
                return BrokerState.UNFENCED
            return BrokerState.CONTROLLED_SHUTDOWN if world.index.leads(broker.id) else BrokerState.SHUTDOWN_NOW
        case _:
            if world.index.leads(broker.id) or not _everybody_saw_it_leave(world, broker.id):
                return BrokerState.CONTROLLED_SHUTDOWN
            return BrokerState.SHUTDOWN_NOW


def _transition(world: World, broker: BrokerImage, granted: BrokerState) -> list[VersionedRecord]:
    match granted:
        case BrokerState.UNFENCED:
            return unfence_records(world, broker)
        case BrokerState.CONTROLLED_SHUTDOWN:
            return shutdown_records(world, broker)
        case _:
            return [] if broker.fenced else fence_records(world, broker)


def _everybody_saw_it_leave(world: World, broker_id: int) -> bool:
    session = world.sessions.get(broker_id)
    if session is None or session.shutdown_offset is None:
        # An earlier controller moved its partitions away; how far everybody must be is only known from here on.
        return False
    for other in world.image.brokers.values():
        heard = world.sessions.get(other.id)
        if other.active and heard is not None and heard.metadata_offset < session.shutdown_offset:
            return False
    return True
