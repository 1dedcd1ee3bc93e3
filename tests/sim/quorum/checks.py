"""The promises of the quorum, looked at after every event. Each check says which one was broken."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from penstock.model.ids import NO_NODE
from penstock.protocol.control import KRAFT_VOTERS
from penstock.quorum.events import Ask, Reply, VoteAnswer, VoteAsk
from penstock.quorum.state import QuorumState, Role
from penstock.quorum.voters import VoterSet, voters_record

if TYPE_CHECKING:
    from penstock.model.ids import Epoch, Offset
    from penstock.quorum.state import ReplicaKey
    from tests.sim.quorum.faults import Planted
    from tests.sim.quorum.machine import Entry, Machine

_ENCODED: dict[VoterSet, bytes] = {}


class Checks:
    """What is known of the whole world, which no node of it knows."""

    def __init__(self, planted: Planted) -> None:
        self._planted = planted
        self.votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        self.leaders: dict[int, int] = {}
        self.records: dict[tuple[int, int], Entry] = {}
        self.committed: list[Entry] = []
        self.committed_in: list[int] = []
        """The epoch in which each of them was committed."""

    def asks(self, machine: Machine, message: Ask) -> None:
        if isinstance(message, VoteAsk) and not message.pre_vote:
            self._votes(machine, message.epoch, message.candidate)

    def answers(self, machine: Machine, message: Reply) -> None:
        if isinstance(message, VoteAnswer) and message.granted and not message.pre_vote:
            self._votes(machine, message.epoch, machine.node.voted)

    def _votes(self, machine: Machine, epoch: Epoch, candidate: ReplicaKey) -> None:
        first = self.votes.setdefault((machine.key, epoch), candidate)
        assert first == candidate, f"R1: node {machine.number} voted twice in epoch {epoch}"
        state = machine.disk_state
        assert state is not None, "R1: a vote is told that is not on the disk"
        assert (state.epoch, state.voted) == (epoch, candidate.id), "R1: a vote is told that is not on the disk"

    def persists(self, machine: Machine, state: QuorumState) -> None:
        before = machine.disk_state
        if before is not None and not self._planted.votes_forgotten:
            assert state.epoch >= before.epoch, "epochs never fall"

    def leads(self, machine: Machine, epoch: Epoch) -> None:
        first = self.leaders.setdefault(epoch, machine.number)
        assert first == machine.number, f"epoch {epoch} has two leaders, {first} and {machine.number}"
        # It may come to lead late, when a newer epoch is on: what that committed it need not have.
        older = bisect_left(self.committed_in, epoch)
        missing = machine.log[:older] != self.committed[:older]
        assert not missing, f"R3: node {machine.number} leads epoch {epoch} and lacks something committed"
        state = machine.disk_state
        assert state is not None, "a leadership is on the disk"
        assert state.leader == machine.number, "a leadership is on the disk"

    def appends(self, machine: Machine, at: int) -> None:
        for offset in range(at, len(machine.log)):
            entry = machine.log[offset]
            first = self.records.setdefault((offset, entry.epoch), entry)
            assert first == entry, f"two records of epoch {entry.epoch} at offset {offset}"

    def commits(self, machine: Machine, offset: Offset) -> None:
        node, known = machine.node, self.committed
        assert offset <= len(machine.log), "nothing is committed that is not there"
        assert offset >= machine.high_watermark, "R6: the high watermark only rises"
        if node.leadership is not None:
            assert machine.log[offset - 1].epoch == node.epoch, "R4: committed by counting an older epoch's record"
        since = min(machine.high_watermark, len(known))
        same = min(offset, len(known))
        assert machine.log[since:same] == known[since:same], f"R7: node {machine.number} committed something else"
        if offset > len(known):
            assert not self.committed_in or self.committed_in[-1] <= node.epoch, "an older epoch commits no more"
            self.committed_in.extend([node.epoch] * (offset - len(known)))
            known.extend(machine.log[len(known) : offset])
        machine.high_watermark = offset

    def cuts(self, machine: Machine, to: int) -> None:
        assert machine.node.role is not Role.LEADER, "R2: a leader only appends"
        assert to < len(machine.log), "a log that parts is cut"
        assert to >= machine.high_watermark, "R7: what is committed stays"
        if to < len(self.committed):
            assert machine.log[to] != self.committed[to], "what is committed is cut nowhere"

    def voters(self, machine: Machine) -> None:
        """R5 and R8, after the log's voters may have changed."""
        node, log = machine.node, machine.log
        named = [at for at in range(machine.start, len(log)) if log[at].kind == KRAFT_VOTERS]
        if named:
            assert log[named[-1]].value == _encoded(node.voters), "R8: the voters are those of the newest record"
        elif machine.snapshot is None:
            assert node.voters == machine.formatted, "R8: the voters are those of the newest record"
        else:
            assert node.voters == machine.snapshot[1].voters, "R8: the voters are those of the newest record"
        uncommitted = [at for at in named if at >= len(self.committed)]
        if node.role is Role.LEADER and node.leader != NO_NODE:
            changes = [at for at in uncommitted if log[at].epoch == node.epoch and at > self._first_of(machine)]
            assert len(changes) <= 1, "R5: two changes of the voters are uncommitted"

    def _first_of(self, machine: Machine) -> int:
        """Where the leader's epoch begins: what it says of the voters there changes none of them."""
        leadership = machine.node.leadership
        assert leadership is not None
        return leadership.start + 2


def _encoded(voters: VoterSet) -> bytes:
    found = _ENCODED.get(voters)
    if found is None:
        found = _ENCODED[voters] = voters_record(voters)[1]
    return found
