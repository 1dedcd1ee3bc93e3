"""Producer ids for this broker's producers, from blocks that the controller allots: the door `producer_ids`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import NONE, Refused, error_of
from penstock.model.ids import NodeId
from penstock.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from penstock.server.controller.channel import Ask

PREFETCH_AT: Final = 0.9
"""The next block is fetched when this much of the present one is used, so that nobody waits for it."""


class ProducerIds:
    """Hands out ids one by one. An id that was handed out is never handed out again, whatever fails."""

    def __init__(self, node_id: NodeId, broker_epoch: Callable[[], int], ask: Ask) -> None:
        self._node_id, self._broker_epoch, self._ask = node_id, broker_epoch, ask
        self._block = range(0)
        self._used = 0
        self._next_block: asyncio.Task[range] | None = None

    def take(self) -> int | Awaitable[int]:
        """An id that nobody had before; an awaitable when the next block has to be fetched first."""
        if self._used < len(self._block):
            taken = self._block[self._used]
            self._used += 1
            if self._next_block is None and self._used >= PREFETCH_AT * len(self._block):
                self._next_block = self._fetch()
            return taken
        return self._wait()

    async def next_id(self) -> int:
        """As `take`, for those who await in any case."""
        taken = self.take()
        return taken if isinstance(taken, int) else await taken

    async def _wait(self) -> int:
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
        return await self.next_id()

    def _fetch(self) -> asyncio.Task[range]:
        return asyncio.get_running_loop().create_task(self._allocate(), name="producer ids")

    async def _allocate(self) -> range:
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        reply = await self._ask(request, 0)
        assert isinstance(reply, AllocateProducerIdsResponse), "a request is answered with its own reply"
        if reply.error_code != NONE.code:
            raise Refused(error_of(reply.error_code), "the controller allotted no producer ids")
        return range(reply.producer_id_start, reply.producer_id_start + reply.producer_id_len)
