"""Producer ids for this broker's producers, from blocks that the controller allots: the door `producer_ids`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import NONE, Refused, error_of
from penstock.model.ids import NodeId
from penstock.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from penstock.server.loops.duty import duty

if TYPE_CHECKING:
    from penstock.server.controller.channel import Ask

log = logging.getLogger("penstock.producer_ids")

PREFETCH_AT: Final = 0.9
"""The next block is fetched when this much of the present one is used, so that nobody waits for it."""


class ProducerIds:
    """Hands out ids one by one. An id that was handed out is never handed out again, whatever fails."""

    def __init__(self, node_id: NodeId, broker_epoch: Callable[[], int], ask: Ask) -> None:
        self._node_id, self._broker_epoch, self._ask = node_id, broker_epoch, ask
        self._block = range(0)
        self._used = 0
        self._next_block: asyncio.Task[range] | None = None
        self._filling: asyncio.Task[None] | None = None

    def take(self) -> int | Awaitable[int]:
        """An id that nobody had before; an awaitable when the next block has to be fetched first."""
        if self._used < len(self._block):
            taken = self._block[self._used]
            self._used += 1
            if self._next_block is None and self._used >= PREFETCH_AT * len(self._block):
                self._next_block = self._fetch()
            return taken
        return self._wait()

    def take_now(self) -> int | None:
        """As `take`, for those who cannot wait: None while the next block is being fetched."""
        fetched = self._next_block
        if self._used >= len(self._block) and fetched is not None and _succeeded(fetched):
            self._block, self._used, self._next_block = fetched.result(), 0, None
        if self._used >= len(self._block):
            if self._filling is None:
                self._filling = duty(self._fill(), name="producer ids at hand")
            return None
        taken = self.take()
        assert isinstance(taken, int), "one is at hand"
        return taken

    async def _fill(self) -> None:
        try:
            await self.at_hand()
        except Refused as refusal:
            log.warning("no producer ids: %s", refusal)
        finally:
            self._filling = None

    async def next_id(self) -> int:
        """As `take`, for those who await in any case."""
        taken = self.take()
        return taken if isinstance(taken, int) else await taken

    async def _wait(self) -> int:
        await self.at_hand()
        return await self.next_id()

    async def at_hand(self) -> None:
        """Returns when an id can be taken at once; Refused when the controller gives none."""
        while self._used >= len(self._block):
            if self._next_block is None:
                self._next_block = self._fetch()
            fetching = self._next_block
            try:
                block = await asyncio.shield(fetching)
            except Exception:
                # Whatever was wrong with this block, the next who comes asks for another.
                self._next_block = None
                raise
            if self._next_block is fetching:
                # The first of those who waited for this block takes it into use.
                self._block, self._used, self._next_block = block, 0, None

    def _fetch(self) -> asyncio.Task[range]:
        return asyncio.get_running_loop().create_task(self._allocate(), name="producer ids")

    async def _allocate(self) -> range:
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        reply = await self._ask(request, 0)
        assert isinstance(reply, AllocateProducerIdsResponse), "a request is answered with its own reply"
        if reply.error_code != NONE.code:
            raise Refused(error_of(reply.error_code), "the controller allotted no producer ids")
        return range(reply.producer_id_start, reply.producer_id_start + reply.producer_id_len)


def _succeeded(task: asyncio.Task[range]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
