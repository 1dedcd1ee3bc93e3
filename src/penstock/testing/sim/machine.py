"""A machine of the cluster: its disk, its clock, its address, and the lives of the node that runs on it."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from penstock.model.config import BrokerSettings
from penstock.model.ids import Millis
from penstock.model.ports import Ports
from penstock.server.node import Node
from penstock.testing.sim.disk import Disk, SimOffload
from penstock.testing.sim.loop import SimLoop
from penstock.testing.sim.network import SimNet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.testing.sim.world import World

FIRST_MOMENT_MS = 1_800_000_000_000
"""What wall clocks show when the world begins."""


class SimClock:
    """The clocks of one process: wall time may be off, and both run at the pace of the loop."""

    __slots__ = ("_loop", "wall_ahead_ms")

    def __init__(self, loop: SimLoop, wall_ahead_ms: int = 0) -> None:
        self._loop, self.wall_ahead_ms = loop, wall_ahead_ms

    def now_ms(self) -> Millis:
        return Millis(int(self._loop.time() * 1_000) + FIRST_MOMENT_MS + self.wall_ahead_ms)

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1_000


class Machine:
    """Runs one node at a time. A new life has a new loop; the disk stays."""

    def __init__(self, world: World, node_id: int, properties: Mapping[str, str], random: Random) -> None:
        self.world, self.node_id, self.host = world, node_id, f"node-{node_id}"
        self.properties = dict(properties)
        self._random = random
        self.disk = Disk(Random(random.getrandbits(64)))
        self.disk.scheduler = world.scheduler
        self.lives = 0
        self.loop: SimLoop | None = None
        self.node: Node | None = None
        self.wall_ahead_ms = 0
        self.rate = 1.0
        self.paused = False
        self.unclean = False  # it ended uncleanly since all replicas were last in sync
        self.power_lost = False  # and may have lost bytes
        self.troubled = False  # its disk was made to fail in this life
        self.down_on_purpose = False  # somebody will start it again
        self.retired = False  # nobody will
        self.clock: SimClock | None = None
        self._running: asyncio.Task[None] | None = None
        self._stopping: asyncio.Future[None] | None = None

    @property
    def name(self) -> str:
        return self.host

    @property
    def up(self) -> bool:
        return self.loop is not None

    @property
    def serving(self) -> bool:
        return self.node is not None and self.node.ready

    def start(self) -> None:
        """Begins a new life; `serving` tells when clients are let in."""
        assert self.loop is None, f"{self.host} runs already"
        self.troubled = False
        world = self.world
        self.lives += 1
        world.network.host_up(self.host)
        loop = self.loop = world.new_loop(self.host, self.host, rate=self.rate, ahead_s=self._random.random() * 1_000)
        clock = self.clock = SimClock(loop, self.wall_ahead_ms + world.century_ms)
        self.disk.clock = clock.now_ms
        net = SimNet(world.network, loop, self.host)
        offload = SimOffload(loop, self.disk, Random(self._random.getrandbits(64)))
        life_random = Random(self._random.getrandbits(64))
        world.story.tell(self.host, f"starts (life {self.lives})")

        async def live() -> None:
            node = self.node = Node(
                BrokerSettings.load(self.properties),
                Ports(clock, self.disk, net, offload),
                random=life_random,
                formats_itself=False,
            )
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
        self.loop.pause()

    def resume(self) -> None:
        if self.paused and self.loop is not None:
            self.world.story.tell(self.host, "goes on")
            self.loop.resume()
        self.paused = False

    def step_clock(self, by_ms: int) -> None:
        """The time of day is set; what measures time goes on as it did."""
        assert self.clock is not None, f"{self.host} runs"
        self.world.story.tell(self.host, f"its time of day is set by {by_ms} ms")
        self.clock.wall_ahead_ms += by_ms

    def _end(self, *, silent: bool) -> None:
        loop = self.loop
        assert loop is not None, f"{self.host} runs"
        self.world.node_ending(self)
        self.disk.lives += 1  # whatever a closed coroutine still tries finds its files dead
        loop.kill()
        self.world.network.process_died(loop, self.host, silent=silent)
        self.world.node_ended(self)
        stopping = self._stopping
        self.loop = self.node = self.clock = self._running = self._stopping = None
        self.paused = False
        if stopping is not None and not stopping.done():
            stopping.set_result(None)
