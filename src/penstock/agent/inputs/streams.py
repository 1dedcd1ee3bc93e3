"""Connections whose bytes become portions: what TCP lines and syslog over TCP have in common."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from penstock.agent.inputs.input import Channel
from penstock.agent.inputs.lines import Framed, Framing
from penstock.agent.listening.streams import Guest
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, Portion

STOP_WITHIN_S: Final = 5.0
"""How long a stop waits for room for what is already read."""


def sliced(framed: Framed, events_max: int) -> list[Framed]:
    """In pieces of no more than so many messages."""
    count = len(framed.messages)
    if count <= events_max:
        return [framed]
    return [
        Framed(
            framed.messages[at : at + events_max], [index - at for index in framed.cut if at <= index < at + events_max]
        )
        for at in range(0, count, events_max)
    ]


def nothing() -> None:
    """A stream tells its sender nothing, so there is nothing to do when a portion is safe."""


@dataclass(slots=True)
class Waiting:
    """Messages of one connection for which there was no room, or which would have taken too long at once."""

    framed: Framed
    peer: str
    portion: Portion | None = None
    """Once it is composed."""
    weight_bytes: int = 0

    def __post_init__(self) -> None:
        count = len(self.framed.messages)
        plain_bytes = sum(map(len, self.framed.messages)) + EVENT_OVERHEAD_BYTES * count
        self.weight_bytes = self.portion.size_bytes if self.portion is not None else plain_bytes


class StreamIntake:
    """What the connections of one input share: the way out and the bounds of what they hold.

    Parts of messages are bounded by cutting them; portions that wait for room by reading from nobody until there is
    less. Only the latter may stop the reading: a message whose end is not read would never be complete.
    """

    def __init__(
        self,
        channel: Channel,
        frame: Callable[[], Framing],
        compose: Callable[[Framed, str], Portion],
        *,
        budget_bytes: int,
        idle_timeout_s: float,
        portion_events_max: int,
    ) -> None:
        self.channel, self.frame, self.compose = channel, frame, compose
        self.idle_timeout_s, self.portion_events_max = idle_timeout_s, portion_events_max
        self._part_bytes_max = budget_bytes // 2
        self._waiting_bytes_max = budget_bytes // 2
        self.part_bytes = 0
        self.waiting_bytes = 0
        self.dropped = 0
        """Events that were read and found no room before a stop was over."""
        self._guests: set[StreamGuest] = set()
        self._carrying: set[asyncio.Task[None]] = set()
        self._gate_closed = False

    def guest(self) -> StreamGuest:
        return StreamGuest(self)

    @property
    def room_bytes(self) -> int:
        """For parts of messages."""
        return max(0, self._part_bytes_max - self.part_bytes)

    def enter(self, guest: StreamGuest) -> None:
        self._guests.add(guest)
        if self._gate_closed:
            guest.listen()

    def leave(self, guest: StreamGuest) -> None:
        self._guests.discard(guest)

    @property
    def gate_closed(self) -> bool:
        return self._gate_closed

    def carry(self, line: deque[Waiting], then: Callable[[], None]) -> None:
        """Puts what waits of one connection, in its order, as soon as there is room; then calls `then`."""
        task = asyncio.create_task(self._carry(line, then))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def stop(self) -> None:
        """Takes what is held of every connection, and waits a while for room."""
        for guest in list(self._guests):
            guest.finish()
        if self._carrying:
            await asyncio.wait(set(self._carrying), timeout=STOP_WITHIN_S)
        while self._carrying:
            for task in set(self._carrying):
                task.cancel()
            await asyncio.wait(set(self._carrying))

    async def _carry(self, line: deque[Waiting], then: Callable[[], None]) -> None:
        try:
            while line:
                # Others have their turn between two portions.
                await asyncio.sleep(0)
                first = line[0]
                if first.portion is None:
                    first.portion = self.compose(first.framed, first.peer)
                await self.channel.put(first.portion, nothing)
                self.weigh(-line.popleft().weight_bytes)
        finally:
            for waiting in line:
                self.dropped += len(waiting.framed.messages)
                self.weigh(-waiting.weight_bytes)
            line.clear()
            then()

    def weigh(self, more_bytes: int) -> None:
        """Portions wait, or wait no more."""
        self.waiting_bytes += more_bytes
        closed = self.waiting_bytes > (self._waiting_bytes_max // 2 if self._gate_closed else self._waiting_bytes_max)
        if closed is not self._gate_closed:
            self._gate_closed = closed
            for guest in self._guests:
                guest.listen()


class StreamGuest(Guest):
    """One connection. Reads, frames, hands on; reads no more while what it handed on waits for room."""

    def __init__(self, intake: StreamIntake) -> None:
        self._intake = intake
        self._framing = intake.frame()
        self._part_bytes = 0
        self._late: list[bytes] = []
        self._line: deque[Waiting] = deque()
        self._waiting = False
        self._paused = False
        self._finished = False
        self._heard_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._heard_s = loop.time()
        self._timer = loop.call_later(self._intake.idle_timeout_s, self._look)
        self._intake.enter(self)

    def data_received(self, data: bytes) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        if self._finished:
            return
        if self._waiting:
            # TLS hands over what it had already decrypted when reading was paused.
            self._late.append(data)
        else:
            self._take(self._framing.feed(data, self._intake.room_bytes))

    def connection_lost(self, cause: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.finish(whole=cause is None)
        super().connection_lost(cause)

    def finish(self, *, whole: bool = False) -> None:
        """Nothing more will be read. What is held is the last message; unless it is `whole`, its end is missing."""
        if self._finished:
            return
        self._finished = True
        self._intake.leave(self)
        if self.transport is not None:
            self.transport.close()
        for data in self._late:
            self._take(self._framing.feed(data, self._intake.room_bytes))
        self._late.clear()
        last = self._framing.end()
        if last.messages and not whole:
            last.cut = [0]
        self._take(last)

    def listen(self) -> None:
        """Reads or does not, as things are now."""
        pause = self._waiting or self._intake.gate_closed
        if pause is self._paused or self.transport is None or self.transport.is_closing():
            return
        self._paused = pause
        if pause:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _take(self, framed: Framed) -> None:
        held_bytes = self._framing.held_bytes
        self._intake.part_bytes += held_bytes - self._part_bytes
        self._part_bytes = held_bytes
        if not framed.messages:
            return
        first, *rest = sliced(framed, self._intake.portion_events_max)
        portion: Portion | None = None
        if not self._waiting:
            portion = self._intake.compose(first, self.peer)
            if self._intake.channel.offer(portion, nothing):
                if not rest:
                    return
                first, portion = rest.pop(0), None
        for each in (first, *rest):
            self._line.append(Waiting(each, self.peer, portion))
            self._intake.weigh(self._line[-1].weight_bytes)
            portion = None
        if not self._waiting:
            self._waiting = True
            self._intake.carry(self._line, self._went_on)
            self.listen()

    def _went_on(self) -> None:
        self._waiting = False
        while self._late and not self._waiting:
            self._take(self._framing.feed(self._late.pop(0), self._intake.room_bytes))
        self.listen()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        due_s = self._heard_s + self._intake.idle_timeout_s
        if self._paused or loop.time() < due_s:
            # Who is made to wait is not idle.
            wait_s = self._intake.idle_timeout_s if self._paused else due_s - loop.time()
            self._timer = loop.call_later(wait_s, self._look)
        elif self.transport is not None:
            self._timer = None
            self.transport.close()
