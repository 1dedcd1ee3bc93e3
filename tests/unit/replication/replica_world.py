"""One partition on a few brokers with a controller, all pure: what is late, lost or repeated is up to a seed."""

from __future__ import annotations

from random import Random

from penstock.metadata.entities import PartitionImage
from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NOT_CONTROLLER,
    ErrorCode,
    Refused,
)
from penstock.model.ids import Epoch, Millis, NodeId, Offset
from penstock.replication.isr import DOUBT_MS, Proposal
from penstock.replication.partition import Partition

LAG_MS = 100
FIRST = NodeId(1)


class Broker:
    """One replica. Its log is a list of (epoch, what was appended); it survives everything but truncation."""

    def __init__(self, node: NodeId, world: World, min_isr: int) -> None:
        self.node, self.world = node, world
        self.log: list[tuple[int, int]] = []
        self.broker_epoch = 0
        self.seen: PartitionImage | None = None
        self.asked: Proposal | None = None
        self.state = Partition(node, min_isr, LAG_MS, eligible=world.eligible)

    @property
    def end(self) -> Offset:
        return Offset(len(self.log))

    def take(self, image: PartitionImage) -> None:
        if self.seen is None or image.partition_epoch >= self.seen.partition_epoch:
            self.seen = image
            self.state.become(image, end=self.end, now=self.world.now)


class World:
    """`step` does one thing at random and then looks whether everything that must hold does."""

    def __init__(self, seed: int, brokers: int = 3) -> None:
        self.chance = Random(seed)
        self.now = Millis(1_000)
        self.fenced: set[int] = set()
        self.epochs: dict[int, int] = {}
        self.min_isr = self.chance.choice((1, 2))
        nodes = [NodeId(node) for node in range(1, brokers + 1)]
        self.brokers = {node: Broker(node, self, self.min_isr) for node in nodes}
        for node in nodes:
            self.register(node)
        self.image = PartitionImage(tuple(nodes), (), tuple(nodes), leader=FIRST, leader_epoch=Epoch(0))
        self.committed: list[tuple[int, int]] = []
        self.acked: list[tuple[int, int]] = []
        self.high_watermarks: dict[tuple[int, int], int] = {}
        self.fetches: list[tuple[NodeId, int, int, NodeId, int]] = []
        self.requests: list[tuple[Millis, NodeId, Proposal, dict[int, int]]] = []
        self.written = 0
        self.expansions = self.elections = 0
        for broker in self.brokers.values():
            broker.take(self.image)

    def register(self, node: NodeId) -> None:
        self.epochs[node] = self.brokers[node].broker_epoch = max(self.epochs.values(), default=0) + 1

    def eligible(self, node: NodeId, broker_epoch: int) -> bool:
        return node not in self.fenced and broker_epoch == self.epochs[node]

    # -- what may happen

    def step(self) -> None:
        steps = [
            (6, self.append), (12, self.ask_fetch), (12, self.answer_fetch), (6, self.propose), (6, self.controller),
            (8, self.publish), (2, self.pass_time), (0.5, self.fence), (3, self.unfence), (0.5, self.restart),
        ]  # fmt: skip
        self.chance.choices([what for _, what in steps], [weight for weight, _ in steps])[0]()
        self.check()

    def any_broker(self) -> Broker:
        return self.brokers[NodeId(self.chance.randrange(1, len(self.brokers) + 1))]

    def append(self) -> None:
        broker = self.any_broker()
        try:
            epoch = broker.state.check_append(-1)
        except Refused:
            return
        self.written += 1
        broker.log.append((epoch, self.written))
        broker.state.appended(broker.end, self.now)

    def ask_fetch(self) -> None:
        broker = self.any_broker()
        state = broker.state
        if state.leader not in (-1, broker.node):
            self.fetches.append((broker.node, broker.broker_epoch, state.epoch, state.leader, broker.end))
            del self.fetches[:-6]

    def answer_fetch(self) -> None:
        """Any of the fetches that are under way arrives, and its reply with it; some arrive twice."""
        if not self.fetches:
            return
        which = self.chance.randrange(len(self.fetches))
        node, broker_epoch, epoch, leader_node, offset = self.fetches[which]
        if self.chance.random() < 0.8:
            del self.fetches[which]
        leader, follower = self.brokers[leader_node], self.brokers[node]
        state = leader.state
        try:
            state.check_read(epoch)
            state.check_follower(node, broker_epoch)
        except Refused:
            return
        if broker_epoch < self.epochs[node] and self.chance.random() < 0.5:
            return  # the leader has heard of the newer process; else it has not
        # The toy's divergence: the follower's log as it was when it asked, against ours.
        if follower.log[:offset] != leader.log[:offset] or offset > len(leader.log):
            same = 0
            while same < min(len(leader.log), len(follower.log)) and leader.log[same] == follower.log[same]:
                same += 1
            if (follower.state.epoch, follower.state.leader) == (epoch, leader_node):
                del follower.log[same:]
                follower.state.followed(Offset(0), follower.end)
            return
        state.follower_at(
            state.check_follower(node, broker_epoch),
            Offset(offset),
            log_start=Offset(0),
            broker_epoch=broker_epoch,
            leader_end=leader.end,
            now=self.now,
        )
        is_current = (follower.state.epoch, follower.state.leader, follower.broker_epoch) == (
            epoch, leader_node, broker_epoch,
        )  # fmt: skip
        if is_current and follower.end == offset and self.chance.random() < 0.9:
            follower.log += leader.log[offset : offset + self.chance.randrange(1, 4)]
            follower.state.followed(state.high_watermark, follower.end)

    def propose(self) -> None:
        broker = self.any_broker()
        if broker.asked is not None and broker.state.proposal is not broker.asked:
            broker.asked = None
        broker.asked = broker.asked or broker.state.wanted_isr(self.now)
        if broker.asked is not None:
            epochs = {member.node: member.broker_epoch for member in broker.asked.members}
            self.requests.append((self.now, broker.node, broker.asked, epochs | {broker.node: broker.broker_epoch}))

    def controller(self) -> None:
        self.requests = [request for request in self.requests if self.now - request[0] <= DOUBT_MS]
        if not self.requests:
            return
        _, node, proposal, epochs = self.requests.pop(self.chance.randrange(len(self.requests)))
        error = self.refusal(node, proposal, epochs)
        if error is None:
            isr = tuple(member.node for member in proposal.members)
            self.expansions += proposal.expands
            self.change(isr=isr)
        broker = self.brokers[node]
        if self.chance.random() < 0.3 or broker.asked is not proposal:
            return  # the answer gets lost
        if error is None:
            broker.asked = None
            broker.state.isr_settled(
                proposal,
                frozenset(NodeId(each) for each in self.image.isr),
                leader_epoch=self.image.leader_epoch,
                partition_epoch=self.image.partition_epoch,
                now=self.now,
            )
        elif not broker.state.isr_refused(proposal, error, self.now):
            broker.asked = None

    def refusal(self, node: NodeId, proposal: Proposal, epochs: dict[int, int]) -> ErrorCode | None:
        image = self.image
        if epochs[node] != self.epochs[node]:
            return NOT_CONTROLLER
        if proposal.leader_epoch < image.leader_epoch:
            return FENCED_LEADER_EPOCH
        if image.leader != node:
            return INVALID_REQUEST
        if proposal.partition_epoch < image.partition_epoch:
            return INVALID_UPDATE_VERSION
        if any(each in self.fenced or epoch not in (-1, self.epochs[each]) for each, epoch in epochs.items()):
            return INELIGIBLE_REPLICA
        return None

    def publish(self) -> None:
        self.any_broker().take(self.image)

    def pass_time(self) -> None:
        self.now = Millis(self.now + self.chance.choice((1, 10, LAG_MS)))
        for broker in self.brokers.values():
            broker.state.time_passed(self.now)

    def fence(self) -> None:
        node = self.any_broker().node
        if len(self.fenced) + 1 < len(self.brokers):
            self.fenced.add(node)
            self.elect()

    def unfence(self) -> None:
        if self.fenced:
            node = self.chance.choice(sorted(self.fenced))
            self.brokers[NodeId(node)].take(self.image)
            self.fenced.remove(node)
            self.elect()

    def restart(self) -> None:
        """A process ends and another one takes over its log; fencing comes with it."""
        broker = self.any_broker()
        if len(self.fenced) + 1 < len(self.brokers) or broker.node in self.fenced:
            self.fenced.add(broker.node)
            self.elect()
            self.register(broker.node)
            known = min(broker.state.high_watermark, broker.end)
            broker.state = Partition(broker.node, self.min_isr, LAG_MS, eligible=self.eligible)
            broker.state.high_watermark = Offset(self.chance.randrange(known + 1))
            broker.seen = broker.asked = None
            broker.take(self.image)

    def elect(self) -> None:
        """Clean elections: only who is in sync leads, and the last one stays in the set."""
        alive = tuple(node for node in self.image.isr if node not in self.fenced)
        leader = self.image.leader if self.image.leader in alive else alive[0] if alive else -1
        if alive != self.image.isr or leader != self.image.leader:
            self.change(isr=alive or self.image.isr[:1], leader=leader)

    def change(self, *, isr: tuple[int, ...], leader: int | None = None) -> None:
        to = self.image.leader if leader is None else leader
        bumped = self.image.leader_epoch + (to != self.image.leader)
        self.elections += to != self.image.leader
        self.image = self.image._replace(
            isr=isr, leader=to, leader_epoch=Epoch(bumped), partition_epoch=self.image.partition_epoch + 1
        )

    # -- what must hold

    def check(self) -> None:
        for node, broker in self.brokers.items():
            state = broker.state
            if not state.leading:
                continue
            life = (broker.broker_epoch, state.epoch)
            before = self.high_watermarks.get(life, 0)
            assert before <= state.high_watermark <= broker.end, f"I4: broker {node} at {state.high_watermark}"
            self.high_watermarks[life] = state.high_watermark
            shown = broker.log[: state.high_watermark]
            assert shown[: len(self.committed)] == self.committed[: len(shown)], "I3: committed records differ"
            if len(shown) > len(self.committed):
                self.committed = shown
        for node in self.image.isr:
            held = self.brokers[NodeId(node)].log[: len(self.committed)]
            assert held == self.committed, f"I3: {node} is in sync and lacks committed records"
