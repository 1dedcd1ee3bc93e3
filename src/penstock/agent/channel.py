"""An input's way out: room first, then its transforms, then the outlet."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from penstock.agent.environment import now_ms
from penstock.agent.inputs.input import Done
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, Origin, Parcel, Portion
from penstock.agent.routing.topics import allowed_name

if TYPE_CHECKING:
    from penstock.agent.outlet.lane import Lane
    from penstock.agent.settings.model import InputSettings

SMALL_PORTION_BYTES: Final = 64 << 10
PORTION_OVERHEAD_BYTES: Final = 512
"""What the way of a portion costs besides its events: one of a single line is mostly that."""


class Channel:
    """See `inputs.input.Channel` for what it promises."""

    def __init__(self, settings: InputSettings, host: str, lane: Lane, chance: random.Random | None = None) -> None:
        from penstock.agent.transforms.chain import Chain

        self._name, self._host = settings.name, host
        self._lane = lane
        self._dead_letters = settings.routing.dead_letters
        self._chain = Chain(
            settings.steps, settings.routing, input=settings.name, host=host, chance=chance or random.Random()
        )

    def origin(self, *, path: str = "", peer: str = "") -> Origin:
        return Origin(self._name, self._host, path, peer)

    async def put(self, portion: Portion, done: Done) -> None:
        charge = portion.size_bytes + PORTION_OVERHEAD_BYTES
        await self._lane.share.take(charge)
        self._take(portion, charge, done)

    def offer(self, portion: Portion, done: Done) -> bool:
        charge = portion.size_bytes + PORTION_OVERHEAD_BYTES
        if not self._lane.share.try_take(charge):
            return False
        self._take(portion, charge, done)
        return True

    @property
    def roomy(self) -> bool:
        return self._lane.share.has_room(SMALL_PORTION_BYTES)

    def _take(self, portion: Portion, charge: int, done: Done) -> None:
        """The portion is charged; whatever happens now, the charge goes with it."""
        lane = self._lane
        counts = lane.counts
        try:
            found = self._chain.apply(portion, now_ms())
        except BaseException:
            lane.share.give_back(charge)
            raise
        counts.events_in += len(portion.values)
        counts.filtered += found.filtered
        counts.failed += found.failed
        counts.dead += found.dead
        counts.untimed += found.untimed
        if not found.parcels:
            lane.share.give_back(charge)
            asyncio.get_running_loop().call_soon(done)
            return
        size = charge
        if found.parcels[0].values is not portion.values or len(found.parcels) > 1:
            size = sum(map(_size, found.parcels)) + PORTION_OVERHEAD_BYTES
            lane.share.change(size - charge)
        lane.ship(found.parcels, size, self._dead_topic(portion.origin), done)

    def _dead_topic(self, origin: Origin) -> str | None:
        template = self._dead_letters
        if template is None:
            return None
        if template.constant is not None:
            return template.constant
        filled = template.bind(origin)
        return allowed_name(filled) if isinstance(filled, str) else None


def _size(parcel: Parcel) -> int:
    return sum(map(len, parcel.values)) + EVENT_OVERHEAD_BYTES * len(parcel.values)
