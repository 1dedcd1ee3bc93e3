"""A machine of the cluster: its disk, its clock, its address, and the lives of the node that runs on it.

As a real one a node has two loops, and what passes between them takes a moment that the seed draws, in order.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Protocol

from penstock.model.config import BrokerSettings
from penstock.model.ids import Millis
from penstock.model.ports import Ports
from penstock.server.loops.crossing import two_loops
from penstock.server.node import HANG_TIMEOUT, Node
from penstock.testing.sim.disk import Disk, SimOffload
from penstock.testing.sim.loop import SimLoop
from penstock.testing.sim.network import SimNet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.testing.sim.network import Network
    from penstock.testing.sim.scheduler import Scheduler
    from penstock.testing.sim.story import Story

FIRST_MOMENT_MS = 1_800_000_000_000
"""What wall clocks show when the world begins."""

CROSSING_S_MAX = 0.000_3


class SimClock:
    """The clocks of one process: wall time may be off, and both run at the pace of the loop."""

    __slots__ = ("_loop", "_scheduler", "wall_ahead_ms")

    def __init__(self, loop: SimLoop, wall_ahead_ms: int = 0) -> None:
        self._loop, self._scheduler, self.wall_ahead_ms = loop, loop.scheduler, wall_ahead_ms

    # Asked a hundred thousand times in a run, so both read the loop's time without another call.

    def now_ms(self) -> Millis:
        loop = self._loop
        shown_ms = int((self._scheduler.now * loop.rate + loop.ahead_s) * 1_000)
        return shown_ms + FIRST_MOMENT_MS + self.wall_ahead_ms  # type: ignore[return-value]  # as `Millis`, which is a call

    def monotonic_ms(self) -> float:
        loop = self._loop
        return (self._scheduler.now * loop.rate + loop.ahead_s) * 1_000


class Way:
    """From one loop of a node to the other: everything arrives in the order in which it was handed over."""

    __slots__ = ("_arrives", "_random", "_to")

    def __init__(self, to: SimLoop, random: Random) -> None:
        self._to, self._random, self._arrives = to, random, 0.0

    def __call__(self, callback: Callable[..., object], *args: object) -> None:
        self._arrives = max(self._arrives, self._to.scheduler.now + self._random.random() * CROSSING_S_MAX)
        self._to.at_world_time(self._arrives, callback, *args)


class SimQuarters:
    """The control part of a node on a loop of its own."""

    def __init__(self, data: SimLoop, control: SimLoop, ports: Ports, random: Random) -> None:
        self._data, self._control, self.ports, self.random = data, control, ports, random
        to_control, to_data = (Way(loop, Random(random.getrandbits(64))) for loop in (control, data))
        self.sides = two_loops(to_control=to_control, to_data=to_data)

    def loop(self) -> SimLoop:
        return self._control

    def on_uncaught(self, handler: Callable[..., None]) -> None:
        """The world hears of everything by itself."""

    def held_at(self) -> str | None:
        return self._data.held_by or None

    def run(self, work: Callable[[], None]) -> None:
        with self._control.running():
            work()

    def close(self) -> None:
        """It ends with the process."""


class Surroundings(Protocol):
    """What a machine asks of its world, and tells it."""

    scheduler: Scheduler
    network: Network
    story: Story
    loop: SimLoop
    century_ms: int

    def new_loop(self, name: str, host: str, *, rate: float = 1.0, ahead_s: float = 0.0) -> SimLoop: ...

    def node_made(self, machine: Machine, node: Node, /) -> None: ...

    def node_ending(self, machine: Machine, /) -> None: ...

    def node_ended(self, machine: Machine, /) -> None: ...

    def node_failed(self, machine: Machine, why: str, /) -> None: ...

    def start_failed(self, machine: Machine, broken: BaseException, /) -> None: ...


class Machine:
    """Runs one node at a time. A new life has new loops; the disk stays."""

    def __init__(self, world: Surroundings, node_id: int, properties: Mapping[str, str], random: Random) -> None:
        self.world, self.node_id, self.host = world, node_id, f"node-{node_id}"
        self.properties = dict(properties)
        self._random = random
        self.disk = Disk(Random(random.getrandbits(64)))
        self.disk.scheduler = world.scheduler
        self.lives = 0
        self.loop: SimLoop | None = None
        self.control_loop: SimLoop | None = None
        self.node: Node | None = None
        self.wall_ahead_ms = 0
        self.rate = 1.0
        self.paused = False
        self.unclean = False  # it ended uncleanly since all replicas were last in sync
        self.power_lost = False  # and may have lost bytes
        self.troubled = False  # its disk fails in this life, or hangs for longer than it waits
        self.down_on_purpose = False  # somebody will start it again
        self.retired = False  # nobody will
        self.clock: SimClock | None = None
        self._running: asyncio.Task[None] | None = None
        self._stopping: asyncio.Future[None] | None = None

    @property
    def name(self) -> str:
        return self.host

    @cached_property
    def metadata_log_dir(self) -> str:
        """Where the quorum's files are; asked ten times a second while a cluster heals, and properties never change."""
        return BrokerSettings.load(self.properties).metadata_log_dir

    @property
    def loops(self) -> list[SimLoop]:
        """Those of this life: the broker's, and that of the quorum and the heartbeats."""
        return [loop for loop in (self.loop, self.control_loop) if loop is not None]

    @property
    def up(self) -> bool:
        return self.loop is not None

    @property
    def serving(self) -> bool:
        return self.node is not None and self.node.ready

    @property
    def patience_s(self) -> float:
        """How long a disk may hang before the node that runs here gives it up; clocks may run a little faster."""
        return int(self.properties.get(HANG_TIMEOUT, "30000")) / 1_000 * 0.95

    def start(self) -> None:
        """Begins a new life; `serving` tells when clients are let in."""
        assert self.loop is None, f"{self.host} runs already"
        self.troubled = self.disk.hangs_for_s > self.patience_s
        world = self.world
        self.lives += 1
        world.network.host_up(self.host)
        ahead_s = self._random.random() * 1_000
        loop, control_loop = (world.new_loop(self.host, self.host, rate=self.rate, ahead_s=ahead_s) for _ in range(2))
        self.loop, self.control_loop = loop, control_loop
        clock = self.clock = SimClock(loop, self.wall_ahead_ms + world.century_ms)
        self.disk.clock = clock.now_ms
        net = SimNet(world.network, loop, self.host)
        offload = SimOffload(loop, self.disk, Random(self._random.getrandbits(64)))
        life_random = Random(self._random.getrandbits(64))
        quarters = self._quarters(loop, control_loop, clock)
        world.story.tell(self.host, f"starts (life {self.lives})")

        async def live() -> None:
            node = self.node = Node(
                BrokerSettings.load(self.properties),
                Ports(clock, self.disk, net, offload),
                random=life_random,
                formats_itself=False,
                quarters=quarters,
            )
            node.on_doom = lambda why: self._doomed(loop, why)
            world.node_made(self, node)
            failing = asyncio.ensure_future(node.failed())
            starting = asyncio.ensure_future(node.start())
            await asyncio.wait((failing, starting), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                world.story.tell(self.host, "serves")
            why = await failing
            world.node_failed(self, why)

        self._running = loop.create_task(live(), name=f"{self.host} life {self.lives}")
        self._running.add_done_callback(self._ended)

    def _quarters(self, loop: SimLoop, control_loop: SimLoop, clock: SimClock) -> SimQuarters:
        net = SimNet(self.world.network, control_loop, self.host)
        offload = SimOffload(control_loop, self.disk, Random(self._random.getrandbits(64)))
        random = Random(self._random.getrandbits(64))
        return SimQuarters(loop, control_loop, Ports(clock, self.disk, net, offload), random)

    def _doomed(self, loop: SimLoop, why: str) -> None:
        """A process whose loop is held is cut off by a thread of its own; any other ends by itself."""
        if loop.held_by:
            self.world.node_failed(self, why)

    def _ended(self, running: asyncio.Task[None]) -> None:
        """A start that came to nothing; a real process would end with the same words."""
        if not running.cancelled() and (broken := running.exception()) is not None:
            self.world.start_failed(self, broken)

    def stop(self) -> asyncio.Future[None]:
        """Begins a clean stop; done when the process has ended, in whichever way."""
        loop, node = self.loop, self.node
        assert loop is not None, f"{self.host} runs"
        ended = self._stopping = self.world.loop.create_future()

        async def stopping() -> None:
            if node is not None:
                await node.stop()
            self.world.loop.call_soon(gone)

        def gone() -> None:
            if self.loop is loop:
                self.world.story.tell(self.host, "has stopped")
                self._end(silent=False)
                self.disk.kill()

        self.world.story.tell(self.host, "is told to stop")
        if self._running is not None:
            self._running.remove_done_callback(self._ended)
        loop.create_task(stopping(), name=f"{self.host} stops")
        return ended

    def kill(self) -> None:
        """kill -9: the kernel keeps what was written and closes the connections."""
        self.world.story.tell(self.host, "is killed")
        self.unclean = True
        self._end(silent=False)
        self.disk.kill()

    def cut_power(self) -> None:
        """The machine goes dark: unsynced bytes may be lost, and nobody hears of it."""
        self.world.story.tell(self.host, "loses power")
        self.unclean = self.power_lost = True
        self._end(silent=True)
        self.disk.cut_power()

    def pause(self) -> None:
        assert self.loop is not None, f"{self.host} runs"
        self.world.story.tell(self.host, "is paused")
        self.paused = True
        for loop in self.loops:
            loop.pause()

    def resume(self) -> None:
        if self.paused and self.loop is not None:
            self.world.story.tell(self.host, "goes on")
            for loop in self.loops:
                loop.resume()
        self.paused = False

    def step_clock(self, by_ms: int) -> None:
        """The time of day is set; what measures time goes on as it did."""
        assert self.clock is not None, f"{self.host} runs"
        self.world.story.tell(self.host, f"its time of day is set by {by_ms} ms")
        self.clock.wall_ahead_ms += by_ms

    def _end(self, *, silent: bool) -> None:
        loops = self.loops
        assert loops, f"{self.host} runs"
        self.world.node_ending(self)
        self.disk.lives += 1  # whatever a closed coroutine still tries finds its files dead
        for loop in loops:
            loop.dead = loop.halted = True  # one that is buried reaches the other no more
        for loop in loops:
            loop.kill()
            self.world.network.process_died(loop, self.host, silent=silent)
        self.world.node_ended(self)
        stopping = self._stopping
        self.loop = self.control_loop = self.node = self.clock = self._running = self._stopping = None
        self.paused = False
        if stopping is not None and not stopping.done():
            stopping.set_result(None)
