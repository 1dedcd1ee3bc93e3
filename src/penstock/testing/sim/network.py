"""The network between simulated machines: latency, slow links, partitions in one or both directions, lost connections.

A connection that is cut by a partition stalls, as TCP does, and goes on when the partition heals. Requests are never
delivered twice within a connection; instead a connection may be lost just after a request was delivered, so that the
asker, who cannot know, asks again.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any
from zlib import crc32

from penstock.testing.sim.wire import End
from penstock.transport.net import AsyncioNet

if TYPE_CHECKING:
    from penstock.testing.sim.loop import SimLoop
    from penstock.testing.sim.scheduler import Scheduler

LOOPBACK_S = 0.000_05
RETRY_S = 1.0
"""A connection attempt that was lost is made again after this long, as kernels do."""

FIRST_PORT = 40_000

Whim = Callable[[End, bytes], float]
"""For how many seconds something is late that has come this far; 0 if it is not, and LOST if its connection is."""

LOST = -1.0


class SimListening:
    """A bound address of one process."""

    def __init__(self, network: Network, loop: SimLoop, host: str, port: int, accept: Callable[[], Any]) -> None:
        self._network, self.loop, self.host, self.port, self._accept = network, loop, host, port, accept
        self.serving = False
        self._backlog: list[End] = []

    async def serve(self) -> None:
        self.serving = True
        backlog, self._backlog = self._backlog, []
        for end in backlog:
            self._welcome(end)

    def close(self) -> None:
        self._network.unlisten(self)
        for end in self._backlog:
            end.abort()
        self._backlog.clear()

    def arrive(self, end: End) -> None:
        """The kernel has accepted a connection; the process takes it when it serves and runs."""
        if self.serving:
            self.loop.call_soon(self._welcome, end)
        else:
            self._backlog.append(end)

    def _welcome(self, end: End) -> None:
        if not end.closed:
            end.made(self._accept())


class SimNet(AsyncioNet):
    """The Net port of one process on one machine."""

    __slots__ = ("_host", "_network", "_sim_loop")

    def __init__(self, network: Network, loop: SimLoop, host: str) -> None:
        super().__init__(loop)
        self._network, self._sim_loop, self._host = network, loop, host

    async def listen(  # type: ignore[override]  # it gives what the port asks for: host, port, serve, close
        self, host: str, port: int, accept: Callable[[], Any], *, serving: bool = True
    ) -> SimListening:
        listening = self._network.listen(self._sim_loop, self._host, port, accept)
        if serving:
            await listening.serve()
        return listening

    def host_name(self) -> str:
        return self._host


class Network:
    """All machines and what lies between them. Rates and delays may be changed at any time."""

    def __init__(self, scheduler: Scheduler, random: Random) -> None:
        self._scheduler, self._random = scheduler, random
        self.latency_s = 0.000_3
        self.jitter_s = 0.000_3
        self.drop_rate = 0.0  # connections lost per delivery
        self.split_rate = 0.0  # deliveries that come in two pieces
        self.bytes_per_s = 1e9
        self.whim: Whim | None = None
        self.digest = 0
        self.delivered = 0
        self.dropped = 0
        self._hosts: dict[str, bool] = {}
        self._blocked: set[tuple[str, str]] = set()
        self._slow_s: dict[tuple[str, str], float] = {}
        self._listening: dict[tuple[str, int], SimListening] = {}
        self._ends: dict[End, None] = {}
        self._stalled: dict[End, None] = {}
        self._next_port = FIRST_PORT

    # -- machines

    def host_up(self, host: str) -> None:
        self._hosts[host] = True

    def process_died(self, loop: SimLoop, host: str, *, silent: bool) -> None:
        """All connections of a process end. With `silent` its machine went with it, and nobody is told."""
        for key in [key for key, listening in self._listening.items() if listening.loop is loop]:
            del self._listening[key]
        for end in [end for end in self._ends if end.loop is loop]:
            end.closed = True
            self.forget(end)
            if not silent:
                self._schedule(end, "RST")
        if silent:
            self._hosts[host] = False

    # -- faults

    def block(self, source: str, target: str) -> None:
        self._blocked.add((source, target))

    def unblock(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Ends partitions; what they held back arrives."""
        self._blocked.difference_update(pairs)
        for end in list(self._stalled):
            if (end.host, end.peer.host) in self._blocked:
                continue
            del self._stalled[end]
            owed, end.owed = end.owed, 0
            for _ in range(owed):
                self._schedule_arrival(end, 0)

    def slow(self, source: str, target: str, extra_s: float) -> None:
        self._slow_s[source, target] = extra_s

    def heal(self) -> None:
        """Ends all that is wrong."""
        self._slow_s.clear()
        self.drop_rate = 0.0
        self.unblock(list(self._blocked))

    def blocked(self, source: str, target: str) -> bool:
        return (source, target) in self._blocked

    # -- connections

    def listen(self, loop: SimLoop, host: str, port: int, accept: Callable[[], Any]) -> SimListening:
        port = port or self._free_port()
        if (host, port) in self._listening:
            raise OSError(errno.EADDRINUSE, f"cannot listen on {host}:{port}: it is taken")
        listening = self._listening[host, port] = SimListening(self, loop, host, port, accept)
        return listening

    def unlisten(self, listening: SimListening) -> None:
        if self._listening.get((listening.host, listening.port)) is listening:
            del self._listening[listening.host, listening.port]

    async def connect(self, loop: SimLoop, host: str, port: int, factory: Callable[[], Any], *, source: str) -> Any:
        """(transport, protocol) of a new connection; OSError when it is refused; never ends when nobody answers."""
        while True:
            await asyncio.sleep(self._delay_s(source, host, 0) * loop.rate)
            lost = self.blocked(source, host) or self.blocked(host, source) or self._random.random() < self.drop_rate
            if not lost and self._hosts.get(host, False):
                break
            await asyncio.sleep(RETRY_S * loop.rate)
        listening = self._listening.get((host, port))
        if listening is None:
            await asyncio.sleep(self._delay_s(host, source, 0) * loop.rate)
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        near = End(self, loop, source, self._free_port())
        far = End(self, listening.loop, host, port)
        near.peer, far.peer = far, near
        self._ends[near] = self._ends[far] = None
        listening.arrive(far)
        try:
            await asyncio.sleep(self._delay_s(host, source, 0) * loop.rate)
        except asyncio.CancelledError:
            near.abort()
            raise
        if near.closed:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        protocol = factory()
        near.made(protocol)
        return near, protocol

    def send(self, end: End, item: bytes | str) -> None:
        """Sends bytes or a farewell from `end` to its peer."""
        if self.split_rate and isinstance(item, bytes) and len(item) > 1 and self._random.random() < self.split_rate:
            cut = self._random.randrange(1, len(item))
            self._schedule(end, item[:cut])
            item = item[cut:]
        self._schedule(end, item)

    def forget(self, end: End) -> None:
        self._ends.pop(end, None)

    def reset(self, end: End) -> None:
        """Both ends learn, each in its own time, that the connection is gone."""
        self.dropped += 1
        for each in (end, end.peer):
            each.cut = True
            each.loop.call_soon(each.reset)

    def open_ends(self) -> list[End]:
        return list(self._ends)

    def _schedule(self, end: End, item: bytes | str) -> None:
        peer = end.peer
        if peer.loop.dead:
            # Half open: a machine that is up again knows nothing of this connection, one that is away says nothing.
            if self._hosts.get(peer.host, False) and not end.closed:
                end.loop.call_later(2 * self.latency_s, end.reset)
            return
        end.flight.append(item)
        self._schedule_arrival(end, len(item))

    def _schedule_arrival(self, end: End, size: int) -> None:
        peer = end.peer
        at = self._scheduler.now + self._delay_s(end.host, peer.host, size)
        if at < end.arrives_last:
            at = end.arrives_last
        end.arrives_last = at
        peer.loop.at_world_time(at, self._arrive, end)

    def _arrive(self, end: End) -> None:
        """The next thing that `end` sent reaches its peer. Runs on the peer's loop."""
        peer = end.peer
        if end.cut:
            return
        if self._blocked and (end.host, peer.host) in self._blocked:
            end.owed += 1
            self._stalled[end] = None
            return
        if end.held:
            end.owed += 1
            return
        item = end.flight[0]
        if self.whim is not None and isinstance(item, bytes):
            late_s = self.whim(end, item)
            if late_s == LOST:
                end.flight.popleft()
                self._lose(end, peer, item)
                return
            if late_s:
                end.held = True
                end.owed += 1
                peer.loop.at_world_time(self._scheduler.now + late_s, self._go_on, end)
                return
        self._deliver(end)

    def _go_on(self, end: End) -> None:
        """What was held back arrives, and what came behind it; unless a partition holds it by now."""
        end.held = False
        if end.cut or end in self._stalled:
            return
        owed, end.owed = end.owed, 0
        if not owed:
            return  # a partition held it meanwhile and has let it go: it is on its way
        self._deliver(end)
        for _ in range(owed - 1):
            self._schedule_arrival(end, 0)

    def _deliver(self, end: End) -> None:
        peer = end.peer
        item = end.flight.popleft()
        self.delivered += 1
        if isinstance(item, bytes):
            self.digest = crc32(item, self.digest)
            if self.drop_rate and self._random.random() < self.drop_rate:
                self._lose(end, peer, item)
                return
        peer.take(item)

    def _lose(self, end: End, peer: End, item: bytes) -> None:
        """The connection breaks in the middle of a delivery, or just after it."""
        arrived = len(item) if self._random.random() < 0.5 else self._random.randrange(len(item))
        if arrived:
            peer.take(item[:arrived])
        self.reset(end)

    def _delay_s(self, source: str, target: str, size: int) -> float:
        if source == target:
            return LOOPBACK_S
        delay = self.latency_s + self.jitter_s * self._random.random() + size / self.bytes_per_s
        return delay + self._slow_s.get((source, target), 0.0) if self._slow_s else delay

    def _free_port(self) -> int:
        self._next_port += 1
        return self._next_port
