"""Work on one directory, one piece after the other, off the loop: nothing that the loop does waits for the disk.

A piece is begun on the loop (`begin` says what the thread does), done in a thread, and told of on the loop (`done`). So
what a piece changes belongs to the thread while it runs and to nobody else, and the order on the disk is the order in
which the pieces were asked for. A disk that hangs holds up what stands in the queue, and only that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, TypeVarTuple

from penstock.model.errors import Refused, StorageFailed
from penstock.server.loops.duty import duty

if TYPE_CHECKING:
    from penstock.model.ports import Offload

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Work = Callable[[], T]


class _Piece(NamedTuple, Generic[T]):
    begin: Callable[[], Work[T]]
    done: Callable[[T], None]
    failed: Callable[[Exception], None] | None


class DiskQueue:
    """`on_failure` is told of the first piece that failed and had nobody waiting; nothing is done after it."""

    def __init__(
        self, offload: Offload, directory: str, on_failure: Callable[[StorageFailed], None], *, name: str
    ) -> None:
        self._offload, self._directory, self._on_failure, self._name = offload, directory, on_failure, name
        self._pieces: deque[_Piece[Any]] = deque()
        self._working: asyncio.Task[None] | None = None
        self._resting: list[asyncio.Future[None]] = []
        self._over = False

    def put(self, begin: Callable[[], Work[T]], done: Callable[[T], None]) -> None:
        """One more piece, for which nobody waits: if it fails the directory has."""
        self._add(_Piece(begin, done, None))

    async def do(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """The same for somebody who waits for what `work` gives, or raises."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(result: T) -> None:
            if not future.done():
                future.set_result(result)

        def failed(why: Exception) -> None:
            if not future.done():
                future.set_exception(why)

        self._add(_Piece(lambda: partial(work, *args), done, failed))
        return await future

    async def quiet(self) -> None:
        """Returns when nothing is left to do, or nothing will be done any more."""
        while self._working is not None and not self._over:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._resting.append(future)
            await future

    def crash(self) -> None:
        """As if the process had been killed: what was not begun is never done."""
        self._end()
        if self._working is not None:
            self._working.cancel()

    def _add(self, piece: _Piece[T]) -> None:
        if self._over:
            if piece.failed is not None:
                piece.failed(StorageFailed(self._directory, "nothing is written there any more"))
            return
        self._pieces.append(piece)
        if self._working is None:
            self._working = duty(self._work(), name=self._name)

    async def _work(self) -> None:
        try:
            while self._pieces and not self._over:
                await self._do(self._pieces.popleft())
        finally:
            self._working = None
            self._rest()

    async def _do(self, piece: _Piece[T]) -> None:
        try:
            result = await self._offload.call(piece.begin())
        except Exception as broken:
            if self._over:
                return
            if piece.failed is not None:
                piece.failed(broken)
            elif isinstance(broken, OSError | StorageFailed | Refused):
                # After a failed write or sync nobody knows what is on the platter: it can only be read again.
                self._end()
                why = broken if isinstance(broken, StorageFailed) else StorageFailed(self._directory, str(broken))
                self._on_failure(why)
            else:
                raise
            return
        if not self._over:
            piece.done(result)

    def _end(self) -> None:
        self._over = True
        pieces, self._pieces = self._pieces, deque()
        for piece in pieces:
            if piece.failed is not None:
                piece.failed(StorageFailed(self._directory, "nothing is written there any more"))
        self._rest()

    def _rest(self) -> None:
        resting, self._resting = self._resting, []
        for future in resting:
            if not future.done():
                future.set_result(None)
