"""Carries what the quorum's side publishes to the image that the broker acts on, across the two loops of a node.

Batches go over by value, in order, as soon as they show. How much is under way is bounded: when the broker's loop is
held and too much has come together, the rest is left out and made up for by one copy of the whole image when the broker
has caught up. What the broker has taken in comes back: that is how far this broker has heard, and what its heartbeats
tell the controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.model.ids import Offset

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.server.loops.crossing import Sides
    from penstock.server.quorum.metadata_driver import LogBatch, MetadataMirror

UNDER_WAY_MAX: Final = 10_000
"""Records; each is a small object that the log keeps alive anyway for a while."""


class MetadataFeed:
    """Lives on the control loop; only `_take`, `_replace` and `_heard` run on the broker's."""

    def __init__(self, sides: Sides, mirror: MetadataMirror, image: Callable[[], ClusterImage]) -> None:
        """`image` gives what is published, for when the whole of it has to go over."""
        self._sides, self._mirror, self._image = sides, mirror, image
        self._under_way = 0
        self._behind = False
        self._waiting: list[tuple[Offset, asyncio.Future[None]]] = []
        self.taken = Offset(-1)
        """The last offset that shows in the broker's image."""

    async def level(self) -> None:
        """Returns when the broker's image shows all that is published now."""
        offset = self._image().offset
        if self.taken < offset:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((offset, future))
            await future

    def applied(self, batches: Sequence[LogBatch], image: ClusterImage) -> None:
        if self._behind or self._under_way >= UNDER_WAY_MAX:
            self._behind = True
            return
        size = sum(1 + len(batch.records) for batch in batches)
        self._under_way += size
        self._sides.data.tell(self._take, tuple(batches), image.offset, size)

    def replaced(self, image: ClusterImage) -> None:
        self._behind = False
        self._under_way += 1
        self._sides.data.tell(self._replace, image.copy(), 1)

    # On the broker's loop

    def _take(self, batches: Sequence[LogBatch], offset: Offset, size: int) -> None:
        self._mirror.take(batches)
        self._sides.control.tell(self._heard, offset, size)

    def _replace(self, image: ClusterImage, size: int) -> None:
        offset = image.offset
        self._mirror.replace(image)
        self._sides.control.tell(self._heard, offset, size)

    # Back on the control loop

    def _heard(self, offset: Offset, size: int) -> None:
        self._under_way -= size
        self.taken = offset
        for wanted, future in self._waiting:
            if wanted <= offset and not future.done():
                future.set_result(None)
        self._waiting = [each for each in self._waiting if not each[1].done()]
        if self._behind and not self._under_way:
            self.replaced(self._image())
