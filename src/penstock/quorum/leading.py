"""What a leader knows: how far each replica is, what is committed, and whether a majority still listens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.model.ids import ZERO_UUID, Epoch, NodeId, Offset
from penstock.quorum.state import ReplicaKey
from penstock.quorum.voters import Voter, VoterSet

OBSERVER_SESSION_MS = 300_000
REPLICAS_MAX = 10_000


@dataclass(slots=True)
class Progress:
    """How far a replica has come, as its fetches tell. Times are None until it has fetched."""

    key: ReplicaKey
    end: Offset
    fetched_ms: float | None = None
    caught_up_ms: float | None = None
    leader_end_at_fetch: Offset | None = None
    begun_ms: float | None = None

    def fetched(self, now: float, end: Offset, leader_end: Offset) -> None:
        """It asked for `end`, so it has everything before."""
        if end >= leader_end:
            self.caught_up_ms = now
        elif self.leader_end_at_fetch is not None and end >= self.leader_end_at_fetch:
            # It has all there was when it last asked: the rest came since.
            self.caught_up_ms = self.fetched_ms
        self.end, self.fetched_ms, self.leader_end_at_fetch = end, now, leader_end


class Leadership:
    """One epoch of leading, from its first record on."""

    def __init__(self, me: ReplicaKey, epoch: Epoch, start: Offset, granted: Iterable[NodeId], now: float) -> None:
        self.me, self.epoch, self.start = me, epoch, start
        self.granted = frozenset(granted)
        self.since_ms = now
        self.high_watermark: Offset | None = None
        self.replicas: dict[ReplicaKey, Progress] = {}

    def progress(self, replica: ReplicaKey) -> Progress:
        found = self.replicas.get(replica)
        if found is None:
            if len(self.replicas) >= REPLICAS_MAX:
                # Whoever was heard first of is the likeliest to be gone; a voter comes back with its next fetch.
                del self.replicas[next(iter(self.replicas))]
            found = self.replicas[replica] = Progress(replica, Offset(-1))
        return found

    def keeps_up(self, replica: ReplicaKey, now: float, end: Offset, within_ms: float) -> bool:
        """Whether a replica has all of the log, or had it a moment ago: the log may grow faster than one can ask."""
        found = self.replicas.get(replica)
        if found is None or found.caught_up_ms is None:
            return False
        return found.end >= end or now - found.caught_up_ms <= within_ms

    def observers(self, voters: VoterSet, now: float) -> list[Progress]:
        """Replicas that follow without a vote; who has been silent for long is forgotten."""
        for key, each in list(self.replicas.items()):
            if not voters.has(key) and (each.fetched_ms is None or now - each.fetched_ms > OBSERVER_SESSION_MS):
                del self.replicas[key]
        return [each for key, each in self.replicas.items() if not voters.has(key)]

    def voter_end(self, voter: Voter, own_flushed: Offset) -> Offset:
        """What a voter is known to have on its platter; -1 for nothing."""
        if voter.key.id == self.me.id:
            return own_flushed
        exact = self.replicas.get(voter.key)
        if exact is not None and voter.key.directory != ZERO_UUID:
            return exact.end
        return max((each.end for key, each in self.replicas.items() if voter.key.matches(key)), default=Offset(-1))

    def advance(self, voters: VoterSet, own_flushed: Offset) -> Offset | None:
        """The new high watermark if it moved: what a majority has, once that covers a record of this epoch.

        A record of an earlier epoch may be on a majority and still be overwritten; one of our own cannot.
        """
        ends = sorted([self.voter_end(voter, own_flushed) for voter in voters], reverse=True)
        reached = ends[voters.majority - 1]
        if reached <= self.start or (self.high_watermark is not None and reached <= self.high_watermark):
            return None
        self.high_watermark = reached
        return reached

    def majority_heard_ms(self, voters: VoterSet, now: float) -> float:
        """When a majority, ourselves among it if we vote, was last known to listen."""
        heard = [now if node == self.me.id else self._heard_ms(voters, node) for node in voters.ids]
        return sorted(heard, reverse=True)[voters.majority - 1]

    def _heard_ms(self, voters: VoterSet, node: NodeId) -> float:
        voter = voters.get(node)
        assert voter is not None
        times = [each.fetched_ms for key, each in self.replicas.items() if voter.key.matches(key)]
        return max((each for each in times if each is not None), default=self.since_ms)

    def to_remind(self, voters: VoterSet, now: float, every_ms: float) -> list[ReplicaKey]:
        """Voters that have not fetched for a while and may not know who leads."""
        silent = []
        for voter in voters.others(self.me.id):
            progress = self.progress(voter.key)
            if now - self._heard_ms(voters, voter.key.id) < every_ms and progress.begun_ms is not None:
                continue
            if progress.begun_ms is None or now - progress.begun_ms >= every_ms:
                progress.begun_ms = now
                silent.append(voter.key)
        return silent

    def successors(self, voters: VoterSet) -> tuple[ReplicaKey, ...]:
        """The other voters, the most caught up first."""
        others = [voter.key for voter in voters.others(self.me.id)]
        return tuple(sorted(others, key=lambda key: (-self.progress(key).end, key)))
