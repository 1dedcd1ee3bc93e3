"""What a node must remember across restarts for the quorum to stay safe, and how nodes are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from penstock.model.ids import NO_NODE, ZERO_UUID, Epoch, NodeId, Uuid

FIRST_EPOCH = Epoch(0)


class ReplicaKey(NamedTuple):
    """A voter is a node *and* its disk: a node that lost its disk must not vote twice in an epoch."""

    id: NodeId
    directory: Uuid = ZERO_UUID

    def matches(self, other: ReplicaKey) -> bool:
        """Whether both may be the same replica; an unknown directory matches any."""
        return self.id == other.id and (
            ZERO_UUID in (self.directory, other.directory) or self.directory == other.directory
        )


NOBODY = ReplicaKey(NO_NODE)


class Role(Enum):
    """What a node is to the quorum in its epoch. Observers are only ever unattached or followers."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The content of `quorum-state`."""

    epoch: Epoch = FIRST_EPOCH
    leader: NodeId = NO_NODE
    voted: NodeId = NO_NODE
    voted_directory: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """Times of the quorum, named after `controller.quorum.*`."""

    election_timeout_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    election_backoff_max_ms: int = 1_000

    @property
    def check_quorum_ms(self) -> float:
        """A leader that has not heard of a majority for so long no longer believes in itself."""
        return 1.5 * self.fetch_timeout_ms
