"""Waits until the batches of a produce are what its acks promise, or time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    ErrorCode,
)

if TYPE_CHECKING:
    from penstock.model.ids import Offset
    from penstock.server.drivers.hosted import Hosted

Answered = Callable[[list[ErrorCode]], Any]
"""Makes the reply of what became of each batch, in their order."""


def settled(hosted: Hosted, end: Offset, acks: int) -> bool:
    """Whether what `acks` promises of everything before `end` holds already."""
    if acks == -1:
        return hosted.state.high_watermark >= end
    return not hosted.syncs_before_ack or hosted.log is None or hosted.log.flushed >= end


class AwaitedAcks:
    """One produce that waits. `future` has the reply that `answered` makes."""

    __slots__ = ("_acks", "_answered", "_awaited", "_errors", "_left", "_timer", "future")

    def __init__(self, awaited: list[tuple[Hosted, Offset]], acks: int, timeout_ms: int, answered: Answered) -> None:
        loop = asyncio.get_running_loop()
        self._awaited, self._acks, self._answered = awaited, acks, answered
        self._errors: list[ErrorCode | None] = [None] * len(awaited)
        self._left = len(awaited)
        self.future: asyncio.Future[Any] = loop.create_future()
        self._timer = loop.call_later(max(0, timeout_ms) / 1_000, self._finish)
        for index, (hosted, end) in enumerate(awaited):
            if acks == 1:
                hosted.when_flushed(end, partial(self._settled, index))
            else:
                hosted.when_committed(end, partial(self._settled, index))

    def _settled(self, index: int) -> None:
        # Concluded at once: by the time the last one is settled this node may lead again, with another log.
        if self._errors[index] is None:
            self._errors[index] = self._conclusion(*self._awaited[index])
            self._left -= 1
            if not self._left:
                self._finish()

    def _finish(self) -> None:
        self._timer.cancel()
        errors = [
            self._conclusion(*awaited) if error is None else error
            for error, awaited in zip(self._errors, self._awaited, strict=True)
        ]
        self._errors[:] = errors
        if not self.future.done():
            self.future.set_result(self._answered(errors))

    def _conclusion(self, hosted: Hosted, end: Offset) -> ErrorCode:
        """What to tell the producer now that its batch is committed, or will not be in time."""
        state = hosted.state
        if not state.leading:
            return NOT_LEADER_OR_FOLLOWER
        if hosted.log is None:
            return KAFKA_STORAGE_ERROR
        if not settled(hosted, end, self._acks):
            return REQUEST_TIMED_OUT
        if self._acks == -1 and len(state.maximal_isr) < state.effective_min_isr:
            return NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return NONE
