"""The language of the quorum: what can happen to a node (events), what it wants done (effects), what nodes say.

Messages carry what the protocol's nested messages say about the one partition there is; drivers translate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from penstock.model.errors import NONE, ErrorCode
from penstock.model.ids import NO_NODE, Epoch, NodeId, Offset
from penstock.quorum.history import LoggedEntry, QuorumVersion
from penstock.quorum.state import QuorumState, ReplicaKey
from penstock.quorum.voters import ControlEntry, Voter

# What nodes say to each other


@dataclass(frozen=True, slots=True)
class VoteAsk:
    """Vote: `candidate` wants to lead `epoch`; its log ends at `end` with a record of `last_epoch`.

    A pre-vote asks whether it would be elected in the next epoch, and binds nobody.
    """

    epoch: Epoch
    candidate: ReplicaKey
    voter: ReplicaKey
    last_epoch: Epoch
    end: Offset
    pre_vote: bool = False


@dataclass(frozen=True, slots=True)
class VoteAnswer:
    epoch: Epoch
    leader: NodeId = NO_NODE
    granted: bool = False
    error: ErrorCode = NONE
    pre_vote: bool = False


@dataclass(frozen=True, slots=True)
class BeginAsk:
    """BeginQuorumEpoch: `leader` leads `epoch`."""

    epoch: Epoch
    leader: NodeId
    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class EndAsk:
    """EndQuorumEpoch: `leader` no longer leads; the successors are ordered by how much of the log they have."""

    epoch: Epoch
    leader: NodeId
    successors: tuple[ReplicaKey, ...] = ()


@dataclass(frozen=True, slots=True)
class EpochAnswer:
    """The answer to BeginAsk and EndAsk, and what every refused Fetch carries: who leads which epoch."""

    epoch: Epoch
    leader: NodeId = NO_NODE
    error: ErrorCode = NONE


@dataclass(frozen=True, slots=True)
class AddAsk:
    """AddRaftVoter: `voter` shall vote."""

    voter: Voter


@dataclass(frozen=True, slots=True)
class RemoveAsk:
    """RemoveRaftVoter: the voter with this very disk shall no longer vote."""

    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class UpdateAsk:
    """UpdateRaftVoter: `voter`, which follows in `epoch`, listens elsewhere now or speaks other kraft versions."""

    epoch: Epoch
    voter: Voter


@dataclass(frozen=True, slots=True)
class ChangeAnswer:
    """The answer to a change of the voters. Without an error it is in the log, whole before `end`."""

    epoch: Epoch
    leader: NodeId = NO_NODE
    error: ErrorCode = NONE
    message: str = ""
    end: Offset = Offset(-1)


ChangeAsk = AddAsk | RemoveAsk | UpdateAsk
Ask = VoteAsk | BeginAsk | EndAsk | ChangeAsk
Reply = VoteAnswer | EpochAnswer | ChangeAnswer

# Events. There are many of them and nobody compares them, so they are tuples.


class Started(NamedTuple):
    """The node has read its disk. `state` is None when it never took part; the log ends at `end`, all of it flushed."""

    now: float
    state: QuorumState | None
    end: Offset
    last_epoch: Epoch


class Tick(NamedTuple):
    """Time has passed; due at `QuorumNode.deadline`, harmless at any other time."""

    now: float


class Appended(NamedTuple):
    """The local log ends at `end` with a record of `last_epoch`: appended as leader or follower.

    `entries` are the control records among what was appended.
    """

    now: float
    end: Offset
    last_epoch: Epoch
    entries: tuple[LoggedEntry, ...] = ()


class Truncated(NamedTuple):
    """The local log was cut: it ends at `end` with a record of `last_epoch`."""

    now: float
    end: Offset
    last_epoch: Epoch


class SnapshotInstalled(NamedTuple):
    """A snapshot from the leader took the place of the log; it is synced, and everything in it is committed."""

    now: float
    end: Offset
    epoch: Epoch
    version: QuorumVersion


class Flushed(NamedTuple):
    """Everything before `end` is on the platter."""

    now: float
    end: Offset


class Asked(NamedTuple):
    """A node sent a request. The step's effects hold exactly one `Answer`."""

    now: float
    message: Ask


class Answered(NamedTuple):
    """`by` answered what it was sent."""

    now: float
    by: NodeId
    message: Reply


class ReplicaFetched(NamedTuple):
    """A replica fetched from us at `end`: everything before it is on its platter. None: it fetches a snapshot."""

    now: float
    replica: ReplicaKey
    end: Offset | None


class FetchedFromLeader(NamedTuple):
    """The leader served us; `high_watermark` is its own, None when it sent something else than records."""

    now: float
    leader: NodeId
    epoch: Epoch
    high_watermark: Offset | None


class LeaderGone(NamedTuple):
    """Nobody listens any more where the leader did: its process has ended, as far as one can tell from here."""

    now: float
    leader: NodeId
    epoch: Epoch


class ShutDown(NamedTuple):
    """The node is about to stop and would rather hand over than let the others find out."""

    now: float


Event = (
    Started
    | Tick
    | Appended
    | Truncated
    | SnapshotInstalled
    | Flushed
    | Asked
    | Answered
    | ReplicaFetched
    | FetchedFromLeader
    | LeaderGone
    | ShutDown
)

# Effects


@dataclass(frozen=True, slots=True)
class PersistState:
    """Write `quorum-state` and sync it before any effect that follows."""

    state: QuorumState


@dataclass(frozen=True, slots=True)
class Append:
    """Append one control batch in `epoch` at the end of the log, then say `Appended`."""

    epoch: Epoch
    entries: tuple[ControlEntry, ...]


@dataclass(frozen=True, slots=True)
class Flush:
    """Sync the log soon, then say `Flushed`."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request to a voter or the leader; its answer comes back as `Answered`. Lost ones are not missed."""

    to: NodeId
    message: Ask


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to the request of this step."""

    message: Reply


@dataclass(frozen=True, slots=True)
class BecameLeader:
    """This node leads `epoch`, which starts at `start`. The controller may act once `start` is committed."""

    epoch: Epoch
    start: Offset


@dataclass(frozen=True, slots=True)
class BecameFollower:
    """Fetch from `leader`, in `epoch`."""

    leader: NodeId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Resigned:
    """This node no longer leads `epoch`: whatever waits for a commit has to be given up."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """Everything before `offset` is committed."""

    offset: Offset


Effect = PersistState | Append | Flush | Send | Answer | BecameLeader | BecameFollower | Resigned | HighWatermark
