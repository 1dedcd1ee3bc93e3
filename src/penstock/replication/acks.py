"""When a producer may be told that its batch is safe, and what it is told when it is not. Pure.

`acks=-1` promises that every replica in sync has the batch, `acks=1` that this replica's own log counts it, `acks=0`
promises nothing. A produce is answered at once when its promise holds (`holds`), else when the partition says that it
does, when this node stops leading, or when time is up: `decide_ack` says with which error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    ErrorCode,
)

if TYPE_CHECKING:
    from penstock.model.ids import Offset
    from penstock.replication.partition import Partition

ALL_IN_SYNC: Final = -1


class Replica(Protocol):
    """A partition's replication state, and what its log tells. There is no log while its directory is offline."""

    @property
    def state(self) -> Partition: ...
    @property
    def log(self) -> object | None: ...
    def counted_end(self) -> Offset:
        """How far the log counts: what is written or, where the topic asks for that, only what is synced."""


def holds(replica: Replica, end: Offset, acks: int) -> bool:
    """Whether what `acks` promises of everything before `end` holds, or nothing is left to wait for."""
    if acks == ALL_IN_SYNC:
        return replica.state.high_watermark >= end
    return acks == 0 or replica.log is None or replica.counted_end() >= end


def decide_ack(replica: Replica, end: Offset, acks: int) -> ErrorCode:
    """What to tell a producer whose batch ends at `end`, now that its promise holds or it is waited for no longer."""
    state = replica.state
    if state.leader != state.me:
        return NOT_LEADER_OR_FOLLOWER
    if replica.log is None:
        return KAFKA_STORAGE_ERROR
    if not holds(replica, end, acks):
        return REQUEST_TIMED_OUT
    # The set may have shrunk since the append. One that is to grow counts as grown, as for the high watermark.
    if acks == ALL_IN_SYNC and len(state.isr) < state.min_isr and len(state.maximal_isr) < state.effective_min_isr:
        return NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return NONE
