"""A simulation: a cluster comes up, works, is hurt, is healed, becomes quiet, and is judged."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import TYPE_CHECKING

from penstock.model.ids import PartitionKey
from penstock.testing.sim.activities import Activities
from penstock.testing.sim.acts import MISHAPS
from penstock.testing.sim.ages import past_of, remember
from penstock.testing.sim.doors import Doors
from penstock.testing.sim.drawing import drawn
from penstock.testing.sim.emptying import Emptying
from penstock.testing.sim.founding import Founding
from penstock.testing.sim.history import History
from penstock.testing.sim.invariants import Invariants
from penstock.testing.sim.news import News
from penstock.testing.sim.replicas import (
    fetchers_of,
    metadata_log,
    partitions_of,
    pieces,
    quorum_of,
    readable,
    records,
)
from penstock.testing.sim.topics import ORDERS
from penstock.testing.sim.transactions.drawing import with_transactions
from penstock.testing.sim.transactions.transacting import Transacting
from penstock.testing.sim.trouble import Trouble, absent_voters, controller_image
from penstock.testing.sim.truth import Truth
from penstock.testing.sim.workload import Workload
from penstock.testing.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.metadata.entities import TopicImage
    from penstock.metadata.image import ClusterImage
    from penstock.server.partitions.following.fetcher import FollowerFetcher
    from penstock.server.partitions.hosted import Hosted
    from penstock.testing.sim.loop import SimLoop
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.replicas import Piece
    from penstock.testing.sim.story import Story
    from penstock.testing.sim.workload import Reader

UP_S = 30.0
QUIET_S = 90.0
"""How long a cluster that is well again may take to have everything in order."""

QUIET_SOONER_S = 60.0
"""The same where there are transactions: they have hardly any other clients, and time out within ten seconds."""

NEWS_S = 30.0
"""How long it may take until all leaders are others and everybody has read something new from them."""

REST_S = 3.0
FETCHES_A_SECOND_MAX = 5
"""How often a follower that has everything may ask one leader for more; a leader lets it wait for half a second."""

TOMBSTONE_S = 0.2
"""The least time for which a tombstone stays (`delete.retention.ms`); replicas may count on clocks that jump."""

STOP_S = 30.0
LEFTOVERS = 5
LOOK_EVERY_S = 0.1
BUSY_STEPS, BUSY_S = 40_000, 0.5
"""So many steps in so short a time are no work any more."""


def run(
    seed: int,
    *,
    nodes: int = 3,
    seconds: float = 15.0,
    plan: Plan | None = None,
    secured: bool = False,
    transactions: bool = False,
) -> Story:
    """Runs one world. `seconds` is the virtual time during which things go wrong; coming up and healing are extra.

    With `secured` everybody logs in, ACLs decide and change, and what guests are served is held against them. With
    `transactions` there are clients that write and read in them, and what they were told is held against the logs.
    """
    world = World(seed)
    chosen = plan or drawn(world.new_random(), nodes, seconds)
    if secured:
        # Clients of any age take the place of the links that log in.
        chosen.secured, chosen.version_caps = True, False
    if transactions:
        with_transactions(chosen, Random(f"transactions {seed}"))
    world.story.secured, world.story.transactions = chosen.secured, chosen.transactions is not None
    world.story.nodes, world.story.trouble_s = chosen.nodes, chosen.trouble_s
    with world.alive():
        Simulation(world, chosen).live()
    world.story.close(virtual_s=world.scheduler.now, steps=world.scheduler.steps, wire_digest=world.network.digest)
    return world.story


class Simulation:
    """One cluster under one plan."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world, self.plan, self.story = world, plan, world.story
        self.truth = Truth()
        self.invariants = Invariants(world.story, self.truth, producers_expire=plan.producers_expire)
        self.history = History(self.truth)
        self.founding = Founding(world, plan, world.new_random())
        self.workload = Workload(world, plan, self.history, self.founding)
        self.doors = Doors(world, plan, self.history, lambda: self.workload.stopping) if plan.secured else None
        self.transacting: Transacting | None = None
        if plan.transactions is not None:
            self.transacting = Transacting(world, plan, plan.transactions, self.history, self.invariants, self.workload)
        self.trouble = Trouble(world, plan, self.founding, world.new_random(), MISHAPS)
        self.activities = Activities(world, self.workload.admin)
        self.founding.on_replaced = self.invariants.disk_replaced
        world.on_node_made = self.invariants.node_made
        world.on_node_ending = self.invariants.node_ending
        world.on_node_ended = self.invariants.node_ended
        world.scheduler.after_instant = self._after_instant()
        world.century_ms = plan.century_ms
        world.network.latency_s, world.network.jitter_s = plan.latency_s, plan.jitter_s
        self._next_look = 0.0
        self._looked_at = 0, 0.0  # steps and time

    def _after_instant(self) -> Callable[[list[SimLoop]], None]:
        look = self.invariants.after_instant
        others = [] if self.doors is None else [self.doors.known.after_instant]
        if self.transacting is not None:
            others.append(self.transacting.after_instant)
        if not others:
            return look

        def all_of_them(touched: list[SimLoop]) -> None:
            look(touched)
            for other in others:
                other(touched)

        return all_of_them

    def live(self) -> None:
        """The whole of it; stops at the first violation."""
        past = None if self.plan.age is None else past_of(self.plan.age, self.plan)
        self.founding.found(past)
        if past is not None:
            remember(past, self.truth)
        for machine in self.world.machines:
            machine.start()
        if not self._until(lambda: all(machine.serving for machine in self.world.machines), UP_S):
            self._complain("the cluster did not come up", self._not_serving())
            return
        self.workload.start()
        self.activities.start()
        if not self._until(lambda: self.workload.begun, UP_S):
            self._complain("nobody could create topics", [])
            return
        if self.doors is not None:
            self.doors.start()
        if self.transacting is not None:
            self.transacting.start(self.trouble)
        self.trouble.start()
        self._until(lambda: False, self.plan.trouble_s)
        if self.story.violations:
            return
        self.story.tell("world", "everything is made good")
        self.trouble.make_good()
        if self.transacting is not None:
            self.transacting.calm()
        self.workload.stop()
        quiet_s = QUIET_S if self.transacting is None else QUIET_SOONER_S
        if not self._until(self._quiet, quiet_s):
            self._complain(f"not in order {quiet_s:.0f} s after everything was made good", self._disorders())
            return
        news = News(self.world, self.plan, self.history)
        news.start()
        if not self._until(lambda: news.told and self._quiet(), NEWS_S):
            self._complain(f"the news were not heard in {NEWS_S:.0f} s", self._disorders())
            return
        self._rest()
        if not self.story.violations:
            self._judge()
        if not self.story.violations and self.plan.emptied:
            self._empty()

    def _until(self, condition: Callable[[], bool], for_s: float) -> bool:
        """Runs until the condition holds; False when time is over or something was violated."""
        violations = self.story.violations
        scheduler = self.world.scheduler

        def over() -> bool:
            # Asked after every instant, so what is nearly always false is seen without a call.
            if scheduler.steps - self._looked_at[0] > BUSY_STEPS:
                self._look_for_spinning()
            return bool(violations) or condition()

        held = scheduler.run(over, deadline=scheduler.now + for_s)
        return held and not violations

    def _look_for_spinning(self) -> None:
        """Whether somebody works without end and lets no time pass; that is a violation too."""
        scheduler = self.world.scheduler
        if scheduler.now - self._looked_at[1] < BUSY_S:
            self._complain(f"{scheduler.current.name if scheduler.current else ''} is busy for ever", [])
        self._looked_at = scheduler.steps, scheduler.now

    def _complain(self, what: str, why: list[str]) -> None:
        if not self.story.violations:
            self.story.violated(f"{what}: {'; '.join(why)}" if why else what)

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

    def _empty(self) -> None:
        """Everything is deleted; what is left then will be there for ever."""
        self.story.tell("world", "everything is deleted")
        self.workload.end()
        self._until(lambda: all(client.done for client in self.workload.consumers), STOP_S)
        emptying = Emptying(self.world, self.plan)
        emptying.start()
        if self._until(lambda: self._looks_now() and next(emptying.leftovers(), None) is None, QUIET_S):
            self.story.count("clusters emptied")
        else:
            self._complain("not all is gone", [*islice(emptying.leftovers(), LEFTOVERS)])

    def _looks_now(self) -> bool:
        """Ten times a second."""
        now = self.world.scheduler.now
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_EVERY_S
        return True

    def _quiet(self) -> bool:
        return self._looks_now() and not self._disorders()

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
        found = self.workload.unfinished()
        found += [] if self.transacting is None else self.transacting.unfinished()
        found += [f"{host} does not vote" for host in absent_voters(self.world, self.plan)]
        found += [f"broker {broker.id} is fenced" for broker in image.brokers.values() if not broker.active]
        for topic in image.topics.values():
            for number, partition in enumerate(topic.partitions):
                if set(partition.isr) != set(partition.replicas) or partition.reassigning or partition.leader < 0:
                    found.append(
                        f"{topic.name}-{number}: replicas {partition.replicas}, in sync {partition.isr}, "
                        f"eligible {partition.elr}, leader {partition.leader}"
                    )
        found = found or self._unequal(image) or self._unread(image)
        return found if self.transacting is None else found or self.transacting.disorders()

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
        node = next((each.node for each in self.world.machines if each.node_id == node_id), None)
        partitions = partitions_of(node) if node is not None else None
        if partitions is None:
            return None
        return next((each for each in partitions if each.key == (topic_id, number)), None)

    def _unread(self, image: ClusterImage) -> list[str]:
        """Partitions that the group has not read to their end, or a reader without one."""
        found = self._unread_by_group(image) if self.plan.consumers and self.plan.bystanders else []
        return found + [words for reader in self.workload.readers.values() for words in self._unread_by(reader, image)]

    def _unread_by_group(self, image: ClusterImage) -> list[str]:
        topic = image.topic(ORDERS)
        if topic is None:
            return [f"topic {ORDERS} is gone"]
        found = []
        for number, partition in enumerate(topic.partitions):
            hosted = self._hosted(partition.leader, topic.id, number)
            log = None if hosted is None else readable(hosted)
            start, end = (0, 0) if hosted is None or log is None else (log.log_start, hosted.state.high_watermark)
            read = max(start, self.history.read_to.get((ORDERS, number), -1) + 1)
            if read < end:
                found.append(f"{ORDERS}-{number} was read to {read} of {end}")
        return found

    def _unread_by(self, reader: Reader, image: ClusterImage) -> list[str]:
        """Partitions that somebody has not read to their end who reads all that there were at the beginning."""
        topic = image.topic(reader.topic)
        if topic is None:
            return [f"topic {reader.topic} is gone"]
        found = []
        for number, partition in list(enumerate(topic.partitions))[: self.plan.partitions]:
            hosted = self._hosted(partition.leader, topic.id, number)
            position, end = reader.position(number, topic.id), -1 if hosted is None else hosted.state.high_watermark
            if position < end:
                found.append(f"{topic.name}-{number} was read to {position} of {end} by {reader.name}")
        return found

    def _judge(self) -> None:
        """Compares what is there with what was promised."""
        image = controller_image(self.world)
        assert image is not None, "it is quiet"
        found = [f"topic {name} is gone" for name in self.plan.topics() if image.topic(name) is None]
        found += self.history.check()
        found += [] if self.doors is None else self.doors.disagreements()
        found += [] if self.transacting is None else self.transacting.judge()
        for topic in image.topics.values():
            for number, partition in enumerate(topic.partitions):
                for replica in partition.replicas:
                    found += self._losses(replica, topic, number)
        for words in [*found, *self._metadata_differences()]:
            self.story.violated(words)
        for sender in self.history.senders.values():
            self.story.count("sent", sender.sent)
            self.story.count("acknowledged", len(sender.acknowledged))
            for number, why in sorted(sender.failed.items())[:1]:
                if sender.promised and not sender.may_fail:
                    self.story.violated(f"{sender.name}:{number} was given up: {why}")
        self.story.count("read", len(self.history.shown))
        self.story.count("checks", self.invariants.checks)
        self.story.count("connections lost", self.world.network.dropped)

    def _losses(self, node_id: int, topic: TopicImage, number: int) -> list[str]:
        """What a replica lacks of the truth."""
        hosted = self._hosted(node_id, topic.id, number)
        truth = self.truth.partitions.get(PartitionKey(topic.id, number))
        assert hosted is not None, "it is quiet"
        assert hosted.log is not None, "it is quiet"
        if truth is None or self.truth.forgiven(topic.name):
            return []
        high_watermark = hosted.state.high_watermark
        there = {record.offset: record for record in records(hosted.log, high_watermark)}
        gone_by_s = self.world.scheduler.now - TOMBSTONE_S
        if truth.compacted and hosted.state.leading:
            gone = [offset for offset, known in truth.records.items() if known.value is None and offset not in there]
            self.story.count("tombstones taken", len(gone))
        lacking = truth.missing(there, hosted.log.log_start, high_watermark, gone_by_s)
        return [f"node-{node_id}: {words}" for words in lacking]

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
