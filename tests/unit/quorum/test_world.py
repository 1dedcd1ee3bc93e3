"""A quorum under a seed: messages are lost, late and doubled, nodes crash and come back with what was on their platter.

Checked after every event: an epoch has one leader, epochs never fall, what was committed stays and is the same
everywhere.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from penstock.model.ids import Epoch, NodeId, Offset, Uuid
from penstock.quorum.events import (
    Answer,
    Answered,
    Append,
    Appended,
    Asked,
    BecameFollower,
    BecameLeader,
    Effect,
    EpochAnswer,
    Event,
    FetchedFromLeader,
    Flush,
    Flushed,
    HighWatermark,
    PersistState,
    ReplicaFetched,
    Send,
    Started,
    Tick,
)
from penstock.quorum.node import QuorumNode
from penstock.quorum.state import QuorumState, ReplicaKey, Role
from penstock.quorum.voters import Voter, VoterSet

Entry = tuple[int, str]  # (epoch, content)


@dataclass
class Machine:
    """A node with its log and disk."""

    key: ReplicaKey
    node: QuorumNode
    log: list[Entry] = field(default_factory=list)
    flushed: int = 0
    disk_state: QuorumState | None = None
    up: bool = True
    committed: int = 0
    fetch_turn: int = 0


class World:
    def __init__(self, seed: int, size: int) -> None:
        self.random = Random(seed)
        self.voters = VoterSet(Voter(ReplicaKey(NodeId(n), Uuid(bytes([n] * 16)))) for n in range(1, size + 1))
        self.machines = {voter.key.id: Machine(voter.key, self.new_node(voter)) for voter in self.voters}
        self.now = 0.0
        self.queue: list[tuple[float, int, NodeId, Any]] = []
        self.order = 0
        self.leaders: dict[int, NodeId] = {}
        self.history: list[Entry] = []
        # The rates are part of the seed: some worlds are calm, some are not.
        self.loss, self.crash = self.random.choice([0, 0.05, 0.3]), self.random.choice([0, 0.002, 0.01])

    def new_node(self, voter: Voter) -> QuorumNode:
        return QuorumNode(voter, self.voters, Random(self.random.random()))

    def later(self, to: NodeId, what: Any, delay: float) -> None:
        self.order += 1
        heapq.heappush(self.queue, (self.now + delay, self.order, to, what))

    def fetch_in(self, machine: Machine, delay: float) -> None:
        machine.fetch_turn += 1
        self.later(machine.key.id, ("fetch", machine.fetch_turn), delay)

    def post(self, to: NodeId, what: Any) -> None:
        for _ in range(self.random.choice([1, 1, 1, 2])):
            if self.random.random() >= self.loss:
                self.later(to, what, self.random.uniform(1, 60))

    def step(self, machine: Machine, event: Event, answer_to: NodeId | None = None) -> None:
        before = machine.node.epoch
        effects = machine.node.step(event)
        assert machine.node.epoch >= before
        for effect in effects:
            self.obey(machine, effect, answer_to)

    def obey(self, machine: Machine, effect: Effect, answer_to: NodeId | None) -> None:
        me = machine.key.id
        match effect:
            case PersistState(state):
                assert machine.disk_state is None or state.epoch >= machine.disk_state.epoch
                machine.disk_state = state
            case Append(epoch, _):
                self.append(machine, epoch, "leader change")
            case Flush():
                self.later(me, "flush", self.random.uniform(0, 10))
            case Send(to, message):
                self.post(to, ("ask", me, message))
            case Answer(message):
                assert answer_to is not None
                self.post(answer_to, ("answer", me, message))
            case BecameLeader(epoch, start):
                assert self.leaders.setdefault(epoch, me) == me, "an epoch has one leader"
                assert start == len(machine.log)
            case BecameFollower():
                self.fetch_in(machine, 1)
            case HighWatermark(offset):
                self.commit(machine, offset)

    def append(self, machine: Machine, epoch: Epoch, content: str) -> None:
        machine.log.append((epoch, content))
        self.step(machine, Appended(self.now, Offset(len(machine.log)), Epoch(machine.log[-1][0])))

    def commit(self, machine: Machine, offset: Offset) -> None:
        known = machine.log[:offset]
        assert len(known) == offset
        shared = min(len(known), len(self.history))
        assert known[:shared] == self.history[:shared], "what was committed stays and is the same everywhere"
        if len(known) > len(self.history):
            self.history = known
        machine.committed = max(machine.committed, offset)

    def deliver(self, to: NodeId, what: Any) -> None:
        machine = self.machines[to]
        if what == "restart":
            self.restart(machine)
        elif not machine.up:
            return
        elif what == "tick":
            self.step(machine, Tick(self.now))
        elif what == "flush":
            machine.flushed = len(machine.log)
            self.step(machine, Flushed(self.now, Offset(machine.flushed)))
        elif what[0] == "fetch":
            if what[1] == machine.fetch_turn:
                self.ask_leader(machine)
        elif what[0] == "ask":
            self.step(machine, Asked(self.now, what[2]), what[1])
        elif what[0] == "answer":
            self.step(machine, Answered(self.now, what[1], what[2]))
        elif what[0] == "fetch request":
            self.serve(machine, *what[1:])
        elif what[0] == "fetched":
            self.take(machine, *what[1:])

    def ask_leader(self, machine: Machine) -> None:
        node = machine.node
        if node.role is Role.FOLLOWER:
            # A voter fetches from where its platter ends: the leader counts it for a majority.
            machine.flushed = len(machine.log)
            last = machine.log[-1][0] if machine.log else 0
            self.post(node.leader, ("fetch request", machine.key, node.epoch, len(machine.log), last))
            self.fetch_in(machine, 200)

    def serve(self, machine: Machine, replica: ReplicaKey, epoch: Epoch, end: int, last: int) -> None:
        node = machine.node
        if node.role is not Role.LEADER or node.check_fetch_epoch(epoch).code:
            self.post(replica.id, ("answer", machine.key.id, EpochAnswer(node.epoch, node.leader)))
            return
        if end > len(machine.log) or (end and machine.log[end - 1][0] != last):
            keep = next((at for at in range(min(end, len(machine.log)), 0, -1) if machine.log[at - 1][0] <= last), 0)
            self.post(replica.id, ("fetched", machine.key.id, epoch, ("truncate", end), min(keep, end - 1), []))
            return
        self.step(machine, ReplicaFetched(self.now, replica, Offset(end)))
        watermark = node.high_watermark or Offset(0)
        self.post(replica.id, ("fetched", machine.key.id, epoch, end, watermark, machine.log[end : end + 5]))

    def take(
        self, machine: Machine, leader: NodeId, epoch: Epoch, at: Any, watermark: int, entries: list[Entry]
    ) -> None:
        node = machine.node
        if node.role is not Role.FOLLOWER or node.epoch != epoch:
            return
        truncates = isinstance(at, tuple)
        if (at[1] if truncates else at) != len(machine.log):
            return  # an answer to an earlier fetch
        if truncates:
            assert machine.committed <= watermark, "nobody truncates what was committed"
            del machine.log[watermark:]
        machine.log += entries
        machine.flushed = min(machine.flushed, len(machine.log))
        last = machine.log[-1][0] if machine.log else 0
        self.step(machine, Appended(self.now, Offset(len(machine.log)), Epoch(last)))
        known = 0 if truncates else watermark
        self.step(machine, FetchedFromLeader(self.now, leader, epoch, Offset(known)))
        if entries or truncates:
            self.fetch_in(machine, 1)

    def restart(self, machine: Machine) -> None:
        machine.up = True
        del machine.log[machine.flushed :]
        voter = self.voters.get(machine.key.id)
        assert voter is not None
        machine.node = self.new_node(voter)
        last = machine.log[-1][0] if machine.log else 0
        self.step(
            machine,
            Started(
                self.now, machine.disk_state, Offset(len(machine.log)), Epoch(last), voters_logged=bool(machine.log)
            ),
        )

    def run(self, until: float, *, calm: bool = False) -> None:
        if calm:
            self.loss = self.crash = 0
        next_tick = self.now
        while self.now < until:
            while self.queue and self.queue[0][0] <= next_tick:
                self.now, _, to, what = heapq.heappop(self.queue)
                self.deliver(to, what)
            self.now, next_tick = next_tick, next_tick + 25
            for machine in self.machines.values():
                if not machine.up:
                    continue
                if self.random.random() < self.crash:
                    machine.up = False
                    self.later(machine.key.id, "restart", self.random.uniform(10, 3_000))
                    continue
                self.step(machine, Tick(self.now))
                if machine.node.role is Role.LEADER and self.random.random() < 0.2:
                    self.append(machine, machine.node.epoch, f"record {self.order}")
                    self.later(machine.key.id, "flush", self.random.uniform(0, 10))


@pytest.mark.parametrize("seed", range(24))
def test_no_seed_breaks_the_quorum(seed: int) -> None:
    world = World(seed, size=(1, 3, 5)[seed % 3])
    for machine in world.machines.values():
        world.restart(machine)
    world.run(12_000)
    world.run(20_000, calm=True)
    leaders = [each for each in world.machines.values() if each.node.role is Role.LEADER]
    assert len(leaders) == 1
    assert world.history, "something was committed"
    world.run(22_000, calm=True)
    assert leaders[0].committed > 0
    behind = [each.key.id for each in world.machines.values() if each.node.leader != leaders[0].key.id]
    assert behind == [], "everybody knows the leader"
