"""A simulation: a cluster comes up, works, is hurt, is healed, becomes quiet, and is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.config import BrokerSettings
from penstock.model.ids import Millis
from penstock.protocol.disk.raft_records import VotersRecord
from penstock.server.formatting import format_directories, new_cluster_id, new_uuid, only_voter
from penstock.testing.sim.history import History
from penstock.testing.sim.invariants import Invariants
from penstock.testing.sim.machine import FIRST_MOMENT_MS, Machine
from penstock.testing.sim.plan import drawn
from penstock.testing.sim.replicas import (
    fetchers_of,
    metadata_log,
    partitions_of,
    pieces,
    quorum_of,
    readable,
    records,
)
from penstock.testing.sim.trouble import Trouble, controller_image
from penstock.testing.sim.workload import BRIEF, LOOSE, ORDERS, Workload
from penstock.testing.sim.world import World

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.server.drivers.follower_fetcher import FollowerFetcher
    from penstock.server.drivers.hosted import Hosted
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.replicas import Piece
    from penstock.testing.sim.story import Story

UP_S = 30.0
QUIET_S = 90.0
"""How long a cluster that is well again may take to have everything in order."""

REST_S = 3.0
FETCHES_A_SECOND_MAX = 10
"""How often a follower that has everything may ask one leader for more; a leader lets it wait for half a second."""

STOP_S = 30.0
LOOK_EVERY_S = 0.1
BUSY_STEPS, BUSY_S = 40_000, 0.5
"""So many steps in so short a time are no work any more."""


def run(seed: int, *, nodes: int = 3, seconds: float = 15.0, plan: Plan | None = None) -> Story:
    """Runs one world. `seconds` is the virtual time during which things go wrong; coming up and healing are extra."""
    world = World(seed)
    chosen = plan or drawn(world.new_random(), nodes, seconds)
    world.story.nodes, world.story.trouble_s = chosen.nodes, chosen.trouble_s
    with world.alive():
        Simulation(world, chosen).live()
    world.story.close(virtual_s=world.scheduler.now, steps=world.scheduler.steps, wire_digest=world.network.digest)
    return world.story


class Simulation:
    """One cluster under one plan."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world, self.plan, self.story = world, plan, world.story
        self.invariants = Invariants(world.story)
        self.history = History()
        self.workload = Workload(world, plan, self.history)
        self.trouble = Trouble(world, plan, world.new_random())
        world.on_node_made = self.invariants.node_made
        world.on_node_ended = self.invariants.node_ended
        world.scheduler.after_instant = self.invariants.after_instant
        world.network.latency_s, world.network.jitter_s = plan.latency_s, plan.jitter_s
        for node_id in range(1, plan.nodes + 1):
            world.machines.append(Machine(world, node_id, plan.node_properties(node_id), world.new_random()))
        self._next_look = 0.0
        self._looked_at = 0, 0.0  # steps and time

    def live(self) -> None:
        """The whole of it; stops at the first violation."""
        self._format()
        for machine in self.world.machines:
            machine.start()
        if not self._until(lambda: all(machine.serving for machine in self.world.machines), UP_S):
            self._complain("the cluster did not come up", self._not_serving())
            return
        self.workload.start()
        if not self._until(lambda: self.workload.begun, UP_S):
            self._complain("nobody could create topics", [])
            return
        self.trouble.start()
        self._until(lambda: False, self.plan.trouble_s)
        if self.story.violations:
            return
        self.story.tell("world", "everything is made good")
        self.trouble.make_good()
        self.workload.stop()
        if not self._until(self._quiet, QUIET_S):
            self._complain(f"not in order {QUIET_S:.0f} s after everything was made good", self._disorders())
            return
        self._rest()
        if not self.story.violations:
            self._judge()

    def _until(self, condition: object, for_s: float) -> bool:
        """Runs until the condition holds; False when time is over or something was violated."""
        assert callable(condition)
        violations = self.story.violations
        scheduler = self.world.scheduler
        deadline = scheduler.now + for_s
        held = scheduler.run(lambda: bool(violations) or self._spinning() or condition(), deadline=deadline)
        return held and not violations

    def _spinning(self) -> bool:
        """Whether somebody works without end and lets no time pass; that is a violation too."""
        scheduler = self.world.scheduler
        if scheduler.steps - self._looked_at[0] > BUSY_STEPS:
            if scheduler.now - self._looked_at[1] < BUSY_S:
                self._complain(f"{scheduler.current.name if scheduler.current else ''} is busy for ever", [])
            self._looked_at = scheduler.steps, scheduler.now
        return bool(self.story.violations)

    def _complain(self, what: str, why: list[str]) -> None:
        if not self.story.violations:
            self.story.violated(f"{what}: {'; '.join(why)}" if why else what)

    # -- the beginning

    def _format(self) -> None:
        """Formats all nodes together: they know each other as voters from the first moment on."""
        random, now = self.world.new_random(), Millis(FIRST_MOMENT_MS)
        cluster_id = new_cluster_id(random)
        voters = VotersRecord()
        for node_id in self.plan.controllers:
            settings = BrokerSettings.load(self.plan.node_properties(node_id))
            endpoints = settings.advertised_controller_listeners
            voters.voters += only_voter(settings.node_id, new_uuid(random), endpoints, f"node-{node_id}").voters
        for machine in self.world.machines:
            settings = BrokerSettings.load(machine.properties)
            format_directories(
                machine.disk, settings.log_dirs, settings.metadata_log_dir, cluster_id, settings.node_id, settings,
                random, now=now, voters=voters, own_host=machine.host,
            )  # fmt: skip

    # -- the end

    def _rest(self) -> None:
        """A while in which only retention goes on; whoever asks without end in it has dropped what it was told."""
        before = self._fetches()
        self._until(lambda: False, REST_S)
        for fetcher, (host, count) in self._fetches().items():
            a_second = (count - before.get(fetcher, (host, count))[1]) / REST_S
            if a_second > FETCHES_A_SECOND_MAX:
                self._complain(
                    f"{host} has everything and asks broker {fetcher.leader} {a_second:.0f} times a second", []
                )

    def _fetches(self) -> dict[FollowerFetcher, tuple[str, int]]:
        return {
            fetcher: (machine.host, fetcher.fetches)
            for machine in self.world.machines
            if machine.node is not None
            for fetcher in fetchers_of(machine.node)
        }

    def _quiet(self) -> bool:
        """Whether all is in order; looked at ten times a second."""
        now = self.world.scheduler.now
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_EVERY_S
        return not self._disorders()

    def _not_serving(self) -> list[str]:
        return [f"{machine.host} does not serve" for machine in self.world.machines if not machine.serving]

    def _disorders(self) -> list[str]:
        """What is not in order yet; the first kind only, because the others follow from it."""
        found = self._not_serving()
        if found:
            return found
        image = controller_image(self.world)
        if image is None:
            return ["there is not exactly one controller"]
        found = [f"{name} is still sending" for name in self.workload.unfinished()]
        found += [f"broker {broker.id} is fenced" for broker in image.brokers.values() if not broker.active]
        for topic in image.topics.values():
            for number, partition in enumerate(topic.partitions):
                if set(partition.isr) != set(partition.replicas) or partition.reassigning or partition.leader < 0:
                    found.append(
                        f"{topic.name}-{number}: replicas {partition.replicas}, in sync {partition.isr}, "
                        f"eligible {partition.elr}, leader {partition.leader}"
                    )
        return found or self._unequal(image) or self._unread(image)

    def _unequal(self, image: ClusterImage) -> list[str]:
        found = []
        for topic in image.topics.values():
            for number, partition in enumerate(topic.partitions):
                ends = {replica: self._ends(replica, topic.id, number) for replica in partition.replicas}
                if len(set(ends.values())) > 1 or any(end != committed for end, committed in ends.values()):
                    found.append(f"{topic.name}-{number} ends (and is committed) at {ends}")
        return found

    def _ends(self, node_id: int, topic_id: bytes, number: int) -> tuple[int, int]:
        """(end, high watermark) of a replica; negative where there is none to look at."""
        hosted = self._hosted(node_id, topic_id, number)
        log = None if hosted is None else readable(hosted)
        return (-1, -2) if log is None or hosted is None else (log.written, hosted.state.high_watermark)

    def _hosted(self, node_id: int, topic_id: bytes, number: int) -> Hosted | None:
        node = self.world.machines[node_id - 1].node
        partitions = partitions_of(node) if node is not None else None
        if partitions is None:
            return None
        return next((each for each in partitions if each.key == (topic_id, number)), None)

    def _unread(self, image: ClusterImage) -> list[str]:
        """Partitions that the group has not read to their end."""
        if not self.plan.consumers:
            return []
        topic = image.topic(ORDERS)
        assert topic is not None, "it was made"
        found = []
        for number, partition in enumerate(topic.partitions):
            hosted = self._hosted(partition.leader, topic.id, number)
            end = hosted.state.high_watermark if hosted is not None else 0
            read = self.history.read_to.get((ORDERS, number), -1)
            if read + 1 < end:
                found.append(f"{ORDERS}-{number} was read to {read + 1} of {end}")
        return found

    def _judge(self) -> None:
        """Compares what is there with what was promised."""
        image = controller_image(self.world)
        assert image is not None, "it is quiet"
        logs, starts = {}, {}
        for name in (ORDERS, LOOSE, BRIEF):
            topic = image.topic(name)
            if topic is None:
                self.story.violated(f"topic {name} is gone")
                continue
            for number, partition in enumerate(topic.partitions):
                hosted = self._hosted(partition.leader, topic.id, number)
                assert hosted is not None, "it is quiet"
                assert hosted.log is not None, "it is quiet"
                rows = records(hosted.log, hosted.state.high_watermark)
                logs[name, number] = [(row.offset, row.value or b"") for row in rows]
                starts[name, number] = hosted.log.log_start
        for words in [*self.history.check(logs, starts), *self._metadata_differences()]:
            self.story.violated(words)
        for sender in self.history.senders.values():
            self.story.count("sent", sender.sent)
            self.story.count("acknowledged", len(sender.acknowledged))
            for number, why in sorted(sender.failed.items())[:1]:
                if sender.promised:
                    self.story.violated(f"{sender.name}:{number} was given up: {why}")
        self.story.count("read", len(self.history.shown))
        self.story.count("deleted by retention", sum(starts.values()))
        self.story.count("checks", self.invariants.checks)
        self.story.count("connections lost", self.world.network.dropped)

    def _metadata_differences(self) -> list[str]:
        """R7: committed batches of the metadata log are the same bytes on every node that still has them."""
        known: dict[int, tuple[str, Piece]] = {}
        found = []
        for machine in self.world.machines:
            quorum = None if machine.node is None else quorum_of(machine.node)
            log = None if quorum is None else metadata_log(quorum)
            if quorum is None or log is None:
                continue
            for piece in pieces(log, log.log_start, quorum.high_watermark or 0):
                host, there = known.setdefault(piece.base, (machine.host, piece))
                if there != piece:
                    found.append(f"R7: the metadata log at {piece.base} differs on {host} and {machine.host}")
        return found[:1]
