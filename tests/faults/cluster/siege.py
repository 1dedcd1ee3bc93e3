"""Carries out a plan of faults on a cluster under load, and looks after every wave whether all is well again.

What is asked at the end of a fault is in the fault (exit codes); what is asked at the end of a wave is here: nobody
ended who should run, every replica is in sync, every writer is acknowledged, every reader and group goes on, whoever
says that it is ready follows the metadata, and topics that were made anew hold what they should. How long each of that
took is kept, and told in the end.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median

from tests.compat.processes import TimedOut, wait_for
from tests.faults.cluster.churn import Churn
from tests.faults.cluster.faults import MENU, Fault, Scene
from tests.faults.cluster.load import Load
from tests.faults.cluster.schedule import Act, Planned, Takes, Verb, Wave
from tests.faults.cluster.watched import FROZEN_S, FrozenWatch, Told

log = logging.getLogger(__name__)

WHOLE_S = 90.0


@dataclass
class Healing:
    """How long after the last fault of a wave something was well again."""

    whole_s: float
    acknowledged_s: float
    read_s: float

    def __str__(self) -> str:
        return (
            f"all in sync after {self.whole_s:.1f} s, all acknowledged after {self.acknowledged_s:.1f} s, "
            f"all readers and groups went on after {self.read_s:.1f} s"
        )


@dataclass
class Siege:
    scene: Scene
    churn: Churn | None = None
    beside: Load | None = None
    """Writes to a topic of short retention."""
    menu: Mapping[str, Fault] = field(default_factory=lambda: MENU)
    healings: list[Healing] = field(default_factory=list)
    begun: Counter[str] = field(default_factory=Counter)
    overlapping: int = 0
    _lasting: dict[int, tuple[Iterator[None], Takes, list[int]]] = field(default_factory=dict)

    def endure(self, wave: Wave) -> None:
        """One wave, and the healing after it."""
        began = time.monotonic()
        for act in wave.acts():
            self._wait_until(began + act.at_s)
            self._carry_out(act)
        self.overlapping += wave.overlapping
        healing = self._heal()
        log.info("%d faults: %s", len(wave.faults), healing)
        self.healings.append(healing)

    def abandon(self) -> None:
        """Ends what lasts, of a wave that failed, so that nothing stays paused or cut."""
        for body, _, _ in self._lasting.values():
            with suppress(Exception):
                next(body, None)
        self._lasting.clear()

    def summary(self) -> str:
        whole, acknowledged, read = (
            [getattr(each, name) for each in self.healings] or [0.0] for name in ("whole_s", "acknowledged_s", "read_s")
        )

        def told(values: list[float]) -> str:
            return f"{median(values):.1f} s (at most {max(values):.1f})"

        topics = ""
        if self.churn is not None:
            topics = f"topics made {self.churn.made} times and deleted {self.churn.deleted} times; "
        return (
            f"{self.begun.total()} faults of {len(self.begun)} kinds in {len(self.healings)} waves, "
            f"{self.overlapping} of them beside another; {topics}in the median in sync after {told(whole)}, "
            f"acknowledged after {told(acknowledged)}, read after {told(read)}"
        )

    # -- acts

    def _wait_until(self, instant: float) -> None:
        """The instant of a fault is what is varied, so time is the condition; meanwhile nobody may end by itself."""

        def due() -> bool:
            self._look()
            return time.monotonic() >= instant

        wait_for("the instant of a fault", due, timeout_s=600, pause_s=0.02)

    def _look(self) -> None:
        taken = self.scene.taken[Takes.PROCESS]
        for node in self.scene.cluster.nodes.values():
            if node.node_id not in taken and node.child is not None and not node.running:
                code = node.child.wait(1)
                raise AssertionError(f"node {node.node_id} ended by itself with {code}\n{node.child.tail()}")

    def _carry_out(self, act: Act) -> None:
        if act.verb is Verb.BEGIN:
            self._begin(act.fault)
        else:
            self._end(act.fault)

    def _begin(self, planned: Planned) -> None:
        scene, chosen = self.scene, self.menu[planned.kind.name]
        chance = random.Random(planned.seed)
        node = chosen.victim(scene, chance)
        log.info("fault %d begins: %s, node %d", planned.number, planned.kind.name, node.node_id)
        takes, whom = planned.kind.takes, [node.node_id]
        if takes is Takes.EVERY_PROCESS:
            takes, whom = Takes.PROCESS, scene.node_ids
        scene.taken[takes] |= set(whom)
        body = chosen.body(scene, node, chance)
        self._lasting[planned.number] = (body, takes, whom)
        next(body)
        self.begun[planned.kind.name] += 1

    def _end(self, planned: Planned) -> None:
        body, takes, whom = self._lasting.pop(planned.number)
        next(body, None)
        self.scene.taken[takes] -= set(whom)
        log.info("fault %d ends: %s", planned.number, planned.kind.name)

    # -- healing

    def _heal(self) -> Healing:
        scene = self.scene
        ended = time.monotonic()
        assert not self._lasting, f"every fault ends: {self._lasting}"
        scene.settle()
        whole_s = self._timed(ended, self._wait_until_whole)
        acknowledged_s = self._timed(ended, scene.load.wait_for_progress)
        read_s = self._timed(ended, scene.load.wait_for_readers)
        self._wait_until_all_follow()
        if self.churn is not None:
            self.churn.check()
        return Healing(whole_s, acknowledged_s, read_s)

    def _wait_until_whole(self) -> None:
        cluster, last = self.scene.cluster, ""

        def whole() -> bool:
            nonlocal last
            self._look()
            last = cluster.trouble()
            return not last

        try:
            wait_for("a whole cluster", whole, timeout_s=WHOLE_S, pause_s=0.1)
        except TimedOut:
            raise AssertionError(f"not whole after {WHOLE_S:.0f} s: {last}\n{cluster.last_words()}") from None

    @staticmethod
    def _timed(since: float, wait: Callable[[], object]) -> float:
        wait()
        return time.monotonic() - since

    def _wait_until_all_follow(self) -> None:
        """Everybody reaches what anybody knows now; whoever is ready and does not is frozen."""
        cluster, watch = self.scene.cluster, FrozenWatch()
        goal = max(told.applied for told in self._told().values())

        def reached() -> bool:
            told = self._told()
            frozen = watch.look(told)
            assert not frozen, f"{frozen}\n{cluster.last_words()}"
            return len(told) == len(cluster.nodes) and all(
                each.ready and each.applied >= goal for each in told.values()
            )

        try:
            wait_for("all to follow", reached, timeout_s=2 * FROZEN_S, pause_s=0.2)
        except AssertionError as failure:
            raise AssertionError(f"{failure}: {self._told()}, the goal is {goal}\n{cluster.last_words()}") from failure

    def _told(self) -> dict[int, Told]:
        found = {}
        for node in self.scene.cluster.nodes.values():
            with suppress(OSError):
                found[node.node_id] = self.scene.cluster.told(node)
        return found
