"""What everything under one seed shares: time, network, machines, chance, logs, and the story of what happened."""

from __future__ import annotations

import gc
import logging
import random as global_random
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.testing.sim.loop import SimLoop
from penstock.testing.sim.network import Network
from penstock.testing.sim.scheduler import Scheduler
from penstock.testing.sim.story import Story, Words
from penstock.testing.sim.versions import AgedLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.server.node import Node
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.versions import Caps

PRODUCT = logging.getLogger("penstock")


class World:
    """Everything under one seed: time, network, machines, and the story of what happened."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(f"penstock {seed}")
        self.scheduler = Scheduler()
        self.story = Story(seed)
        self.story.clock = lambda: self.scheduler.now
        self.network = Network(self.scheduler, self.new_random())
        self.machines: list[Machine] = []
        self.century_ms = 0
        self._loops: list[SimLoop] = []
        self.loop = self.new_loop("world", "world")
        self.on_node_made: Callable[[Machine, Node], None] = lambda _machine, _node: None
        self.on_node_ending: Callable[[Machine], None] = lambda _machine: None
        self.on_node_ended: Callable[[Machine], None] = lambda _machine: None

    def new_random(self) -> Random:
        return Random(self.random.getrandbits(64))

    def new_loop(
        self, name: str, host: str, *, rate: float = 1.0, ahead_s: float = 0.0, caps: Caps | None = None
    ) -> SimLoop:
        """A loop for a process on `host`; whatever it dials is dialled from there. `caps` make it an old client's."""

        async def connect(loop: SimLoop, to: str, port: int, factory: Callable[[], Any]) -> Any:
            transport, protocol = await self.network.connect(loop, to, port, factory, source=host)
            if caps is not None:
                protocol.__class__ = AgedLink
            return transport, protocol

        loop = SimLoop(  # type: ignore[abstract]  # what it lacks no node asks for
            self.scheduler, name, report=self._uncaught, connect=connect, rate=rate, ahead_s=ahead_s
        )
        loop.caps = caps
        self._loops.append(loop)
        return loop

    # -- what machines tell

    def node_made(self, machine: Machine, node: Node) -> None:
        self.on_node_made(machine, node)

    def node_ending(self, machine: Machine) -> None:
        """It runs for the last moment."""
        self.on_node_ending(machine)

    def node_ended(self, machine: Machine) -> None:
        self.on_node_ended(machine)

    def node_failed(self, machine: Machine, why: str) -> None:
        """A node said that it cannot go on; its process ends, as `penstock server start` would."""
        self.story.tell(machine.host, f"ends: {why}")
        self.loop.call_soon(self._reap, machine, machine.loop)

    def start_failed(self, machine: Machine, broken: BaseException) -> None:
        self.story.tell(machine.host, f"cannot start: {_words(broken)}")
        if not machine.troubled:
            self.story.violated(f"{machine.host} cannot start: {_words(broken)}")
        self.loop.call_soon(self._reap, machine, machine.loop)

    def client_failed(self, name: str, broken: BaseException) -> None:
        self.story.violated(f"{name} failed: {_words(broken)}")

    @staticmethod
    def _reap(machine: Machine, life: SimLoop | None) -> None:
        if machine.loop is life and life is not None:
            machine.kill()

    def _uncaught(self, loop: SimLoop, context: dict[str, Any]) -> None:
        broken = context.get("exception")
        what = context.get("message", "")
        self.story.violated(f"{loop.name}: nobody caught it: {what}: {_words(broken) if broken else ''}")

    # -- running

    @contextmanager
    def alive(self) -> Iterator[None]:
        """The surroundings of a run: logs go to the story, chance is seeded, the collector waits, no alarm rings."""
        words = Words(self.story, self._where, self._excused)
        before = PRODUCT.level, PRODUCT.propagate, list(PRODUCT.handlers)
        chance = global_random.getstate()
        main = threading.current_thread() is threading.main_thread()
        alarm = signal.signal(signal.SIGALRM, signal.SIG_IGN) if main else None
        collecting = gc.isenabled()
        PRODUCT.handlers[:] = [words]
        PRODUCT.setLevel(logging.INFO)
        PRODUCT.propagate = False
        # Clients spread their retries by the shared generator; nothing else in a run may use it.
        global_random.seed(self.random.getrandbits(64))
        gc.disable()
        try:
            yield
            gc.collect()  # tasks that failed and were forgotten speak up now, while somebody listens
        finally:
            for loop in self._loops:
                loop.kill()
            if collecting:
                gc.enable()
            global_random.setstate(chance)
            if main:
                signal.signal(signal.SIGALRM, alarm)
            PRODUCT.level, PRODUCT.propagate, PRODUCT.handlers[:] = before[0], before[1], before[2]

    def _where(self) -> str:
        return self.scheduler.current.name if self.scheduler.current is not None else "world"

    def _excused(self, record: logging.LogRecord) -> bool:
        """A node whose disk was broken may say so."""
        where = self._where()
        return any(machine.host == where and machine.troubled for machine in self.machines)


def _words(broken: BaseException) -> str:
    """What it was and where it came from."""
    frames = traceback.extract_tb(broken.__traceback__)[-3:]
    trail = " < ".join(f"{each.filename.rpartition('penstock/')[2]}:{each.lineno} {each.name}" for each in frames[::-1])
    return f"{type(broken).__name__}: {broken} ({trail})"
