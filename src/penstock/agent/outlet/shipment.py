"""Parcels of one portion on their way, settled together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.agent.inputs.input import Done
from penstock.agent.portion import Parcel
from penstock.client.producer.delivery import BulkDelivery

if TYPE_CHECKING:
    from penstock.agent.outlet.marks import Mark
    from penstock.agent.spool.segments import Segment


class Kept:
    """A place in the spool that several shipments share; it is freed with the last of them."""

    __slots__ = ("frames", "pending", "segment")

    def __init__(self, segment: Segment, frames: int, pending: int) -> None:
        self.segment, self.frames, self.pending = segment, frames, pending


class Shipment:
    """What a lane carries. `kept` when it is in the spool too."""

    __slots__ = (
        "_at", "_landed", "charge_bytes", "dead", "dead_later", "dead_letters", "deliveries", "done", "in_order",
        "kept", "mark", "number", "parcels", "settled", "size_bytes", "took_off_ms",
    )  # fmt: skip

    def __init__(self, parcels: list[Parcel], size_bytes: int, dead_letters: str | None, done: Done | None) -> None:
        self.parcels = parcels
        self.dead: list[Parcel] = []
        """Dead letters that the lane made of some of its records, to be sent like parcels."""
        self.dead_later: list[Parcel] = []
        """Those that are sent when the rest has landed."""
        self.dead_letters = dead_letters
        self.size_bytes = size_bytes
        """What it weighs while it is in the producer's hands."""
        self.charge_bytes = size_bytes
        """What it holds of its input's memory; 0 for what came back from the spool."""
        self.done = done
        self.number = 0
        """Its place among those that took off."""
        self.took_off_ms = 0.0
        self.kept: Kept | None = None
        self.mark: Mark | None = None
        """By which the spool knows it, with `exactly_once`."""
        self.in_order = True
        """Whether its mark is as old as it is."""
        self.settled = False
        self.deliveries: list[BulkDelivery] = []
        self._at = 0
        self._landed: Callable[[Shipment], None] | None = None

    @property
    def safe(self) -> bool:
        """Whether nothing of it can be lost any more."""
        return self.settled or self.kept is not None

    @property
    def records(self) -> int:
        return sum(len(parcel.values) for parcel in self.parcels) + sum(len(parcel.values) for parcel in self.dead)

    def fly(self, deliveries: list[BulkDelivery], landed: Callable[[Shipment], None]) -> None:
        """Calls `landed` when all deliveries are done, never before this returns."""
        self.deliveries, self._at, self._landed = deliveries, 0, landed
        if not self._wait():
            # Everything failed before it was under way.
            asyncio.get_running_loop().call_soon(self.wake)

    def wake(self) -> None:
        """A delivery has come further."""
        if not self._wait() and self._landed is not None:
            landed, self._landed = self._landed, None
            landed(self)

    def _wait(self) -> bool:
        """Waits for the next delivery that is not done; False when all are."""
        while self._at < len(self.deliveries):
            delivery = self.deliveries[self._at]
            if not delivery.done():
                delivery.add_waker(self.wake)
                return True
            self._at += 1
        return False
