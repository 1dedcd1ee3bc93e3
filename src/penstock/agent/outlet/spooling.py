"""A lane's way through the spool: in while brokers are silent, out in order when they are back.

While it is active nothing goes from memory to the producer but what the spool has a copy of, so that everything that
is on the disk leaves before anything newer. It ends when the disk has nothing more for the lane.

With `exactly_once` what is in a transaction is not put on the disk beside it, because nobody could tell later whether
it was committed. While its end was not asked for it is given up instead, and what was in it waits in memory until that
is known. Only an agent that stops puts it on the disk all the same, and says in which transaction it was.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from penstock.agent.errors import SpoolFailed, SpoolFull
from penstock.agent.outlet.marks import Mark, SpoolMarks
from penstock.agent.outlet.shipment import Kept, Shipment
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, Parcel
from penstock.agent.spool.frames import Load

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from penstock.agent.counting import Counts
    from penstock.agent.outlet.committing import Transactions
    from penstock.agent.outlet.memory import Share
    from penstock.agent.spool.spool import Spool

FRAME_BYTES: Final = 1 << 20
"""About how much is put into the spool at once."""

AFTER_FAILURE_S: Final = 1.0


class SpooledLane(Protocol):
    """What is asked of the lane whose shipments go through the disk."""

    name: str
    share: Share
    counts: Counts
    queue: deque[Shipment]
    flying: dict[Shipment, None]
    uncommitted: dict[Shipment, None]
    failed: list[Shipment]

    @property
    def silent_ms(self) -> float: ...

    @property
    def unsafe(self) -> bool: ...

    def put_first(self, shipments: list[Shipment], /) -> None: ...

    def make_safe(self, shipment: Shipment, /) -> None: ...


class SpoolingOutlet(Protocol):
    """What is asked of the outlet that the lane belongs to."""

    spool: Spool | None
    spool_after_ms: int
    saving: int
    stopping: bool
    transactions: Transactions | None
    now_ms: Callable[[], int]

    def pump(self) -> None: ...

    def tell(self, words: str, /) -> None: ...


class Spooling:
    """One lane and its queue on disk."""

    def __init__(self, lane: SpooledLane, outlet: SpoolingOutlet) -> None:
        assert outlet.spool is not None
        self._lane, self._outlet = lane, outlet
        self._queue = outlet.spool.queue(lane.name)
        self.active = self._queue.unread
        self._saver: asyncio.Task[None] | None = None
        self._loader: asyncio.Task[None] | None = None
        self._freeing: set[asyncio.Task[None]] = set()
        self._known_marks: SpoolMarks | None = None

    @property
    def marks(self) -> SpoolMarks | None:
        """Only with `exactly_once`."""
        transactions = self._outlet.transactions
        if self._known_marks is None and transactions is not None:
            self._known_marks = transactions.marks(self._lane.name)
        return self._known_marks

    # In.

    @property
    def _silent(self) -> bool:
        return self._lane.silent_ms >= self._outlet.spool_after_ms

    def check(self) -> None:
        """Time has passed: brokers may have been silent for too long."""
        lane, transactions = self._lane, self._outlet.transactions
        if self._silent and lane.unsafe:
            in_transaction = bool(lane.flying or lane.uncommitted)
            if transactions is not None and in_transaction and transactions.give_up():
                return  # it comes back to the queue, before what is there
            self.active = True
        self.arrived()

    def arrived(self) -> None:
        """The lane has something new. While brokers take what is on the disk it waits in memory, as long as it can."""
        if self.active and (self._silent or self._outlet.stopping or self._lane.share.pressed):
            self._save_soon()

    def _save_soon(self) -> None:
        if self._saver is None and self._unsaved():
            self._saver = asyncio.get_running_loop().create_task(self._save())

    async def save_all(self) -> None:
        """Everything that is in memory only, as far as the disk takes it."""
        self.active = True
        self._save_soon()
        if self._saver is not None:
            await asyncio.wait([self._saver])

    def _unsaved(self) -> list[Shipment]:
        """The next that are in memory only: those under way first, because they are older."""
        lane = self._lane
        transacting = self._outlet.transactions is not None and not self._outlet.stopping
        older = () if transacting else (*lane.uncommitted, *lane.flying, *lane.failed)
        under_way = [each for each in older if not each.safe]
        # What comes from an aborted transaction is older than what is on the disk, and is sent before it.
        older_stays = transacting and (self._queue.unread or any(each.kept is not None for each in lane.queue))
        found: list[Shipment] = []
        size = 0
        for shipment in sorted(under_way, key=lambda each: each.number) or lane.queue:
            if shipment.safe or (older_stays and shipment.number):
                continue
            if found and size + shipment.size_bytes > FRAME_BYTES:
                break
            found.append(shipment)
            size += shipment.size_bytes
        return found

    async def _save(self) -> None:
        try:
            while self.active and (chosen := self._unsaved()):
                try:
                    await self._save_these(chosen)
                except (SpoolFull, SpoolFailed) as wrong:
                    self._outlet.tell(f"input {self._lane.name} waits: {wrong}")
                    if self._outlet.stopping:
                        return
                    await asyncio.sleep(AFTER_FAILURE_S)
                self._lane.share.refused = False
        finally:
            self._saver = None
            self._outlet.pump()

    async def _save_these(self, chosen: list[Shipment]) -> None:
        lane = self._lane
        waiting = all(not self._under_way(each) for each in chosen)
        loads = [
            Load(_stamped([*each.parcels, *each.dead], self._outlet.now_ms()), each.dead_letters, self._mark(each))
            for each in chosen
        ]
        if waiting:
            await self._move(chosen, loads)
        else:
            segment = await self._queue.append(loads, held=True)
            left = [each for each in chosen if not each.settled]
            kept = Kept(segment, 1, len(left))
            for each in left:
                each.kept = kept
            if not left:
                await self._queue.free(segment, 1)
        lane.counts.spooled += sum(load.records for load in loads)
        for each in chosen:
            lane.make_safe(each)

    def _under_way(self, shipment: Shipment) -> bool:
        lane = self._lane
        return shipment in lane.flying or shipment in lane.uncommitted or shipment in lane.failed

    def _mark(self, shipment: Shipment) -> Mark | None:
        marks, transactions, lane = self.marks, self._outlet.transactions, self._lane
        if marks is None or transactions is None:
            return None
        in_flight = shipment in lane.flying or shipment in lane.uncommitted
        shipment.mark = marks.new(transactions.number if in_flight else 0)
        shipment.in_order = not shipment.number
        return shipment.mark

    async def _move(self, chosen: list[Shipment], loads: list[Load]) -> None:
        """They leave the memory altogether."""
        lane = self._lane
        self._take_out(chosen)
        self._outlet.saving += 1
        try:
            await self._queue.append(loads)
        except BaseException:
            # Behind what the disk has, which is older, and before what came meanwhile.
            older = [each for each in lane.queue if each.kept is not None]
            self._take_out(older)
            lane.put_first([*older, *chosen])
            raise
        finally:
            self._outlet.saving -= 1

    def _take_out(self, chosen: list[Shipment]) -> None:
        gone = set(chosen)
        rest = [each for each in self._lane.queue if each not in gone]
        self._lane.queue.clear()
        self._lane.queue.extend(rest)

    # Out.

    def look(self) -> None:
        """Brings the next from the disk when brokers take it; ends when there is nothing more."""
        lane = self._lane
        if not self.active or self._loader is not None or self._outlet.stopping:
            return
        if lane.failed or (lane.queue and lane.queue[0].kept is not None):
            return
        if self._queue.unread:
            if not self._silent:
                self._loader = asyncio.get_running_loop().create_task(self._load())
        elif self._saver is None:
            self.active = False

    async def _load(self) -> None:
        try:
            lost = self._queue.lost_records
            found = await self._queue.read()
            if found is None:
                return
            loads, segment, frames = found
            self._lane.counts.unsendable += self._queue.lost_records - lost
            marks = self.marks
            if marks is not None:
                loads = [load for load in loads if load.mark is None or not marks.arrived(Mark(*load.mark))]
            if not loads:
                await self._queue.free(segment, frames)
                return
            kept = Kept(segment, frames, len(loads))
            self._lane.put_first([_shipment(load, kept) for load in loads])
        except (SpoolFailed, SpoolFull) as wrong:
            self._outlet.tell(f"input {self._lane.name}: {wrong}")
            await asyncio.sleep(AFTER_FAILURE_S)
        finally:
            self._loader = None
            self._outlet.pump()

    def free(self, kept: Kept) -> None:
        """One of the shipments that share a place is acknowledged."""
        kept.pending -= 1
        if not kept.pending:
            task = asyncio.get_running_loop().create_task(self._free(kept))
            self._freeing.add(task)
            task.add_done_callback(self._freeing.discard)

    async def _free(self, kept: Kept) -> None:
        try:
            await self._queue.free(kept.segment, kept.frames)
        except (SpoolFailed, SpoolFull) as wrong:
            self._outlet.tell(str(wrong))

    async def settle_disk(self) -> None:
        """Waits for what is being written, read or removed."""
        tasks = [task for task in (self._saver, self._loader, *self._freeing) if task is not None]
        if tasks:
            await asyncio.wait(tasks)

    def close(self) -> None:
        for task in (self._saver, self._loader):
            if task is not None:
                task.cancel()


def _load(shipment: Shipment, now_ms: int) -> Load:
    parcels = [*shipment.parcels, *shipment.dead, *shipment.dead_later]
    return Load(_stamped(parcels, now_ms), shipment.dead_letters)


def _shipment(load: Load, kept: Kept) -> Shipment:
    shipment = Shipment(load.parcels, _weight(load.parcels), load.dead_letters, None)
    shipment.charge_bytes, shipment.kept = 0, kept
    shipment.mark = None if load.mark is None else Mark(*load.mark)
    return shipment


def _weight(parcels: list[Parcel]) -> int:
    return sum(sum(map(len, parcel.values)) + EVENT_OVERHEAD_BYTES * len(parcel.values) for parcel in parcels)


def _stamped(parcels: list[Parcel], now_ms: int) -> list[Parcel]:
    """With the present time where an event has none: it happened now, not when brokers are back."""
    return [
        parcel
        if parcel.timestamps_ms is not None
        else Parcel(parcel.topic, parcel.values, parcel.keys, parcel.headers, [now_ms] * len(parcel.values))
        for parcel in parcels
    ]
