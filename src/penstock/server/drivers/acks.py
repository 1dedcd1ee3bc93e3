"""Waits until the batches of a produce are what its acks promise, or time is up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    ErrorCode,
)
from penstock.server.context import Later

if TYPE_CHECKING:
    from penstock.model.ids import Offset
    from penstock.server.drivers.hosted import Hosted

Answered = Callable[[list[ErrorCode]], Any]
"""Makes the reply of what became of each batch, in their order."""


_BUCKETS_A_S: Final = 100
_ANSWERS_A_TURN: Final = 128


def settled(hosted: Hosted, end: Offset, acks: int) -> bool:
    """Whether what `acks` promises of everything before `end` holds already."""
    if acks == -1:
        return hosted.state.high_watermark >= end
    return not hosted.syncs_before_ack or hosted.log is None or hosted.log.flushed >= end


def conclusion(hosted: Hosted, end: Offset, acks: int) -> ErrorCode:
    """What to tell a producer now that its batch is committed, or will not be in time."""
    state = hosted.state
    if not state.leading:
        return NOT_LEADER_OR_FOLLOWER
    if hosted.log is None:
        return KAFKA_STORAGE_ERROR
    if not settled(hosted, end, acks):
        return REQUEST_TIMED_OUT
    if acks == -1 and len(state.maximal_isr) < state.effective_min_isr:
        return NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return NONE


class AwaitedBatch(Later):
    """A produce that waits for one batch, as nearly all do. `reply` is for the case that all goes well, if it is known
    already; else, and when it does not, `answered` makes one.
    """

    __slots__ = ("_acks", "_answered", "_end", "_error", "_hosted", "_line", "_reply", "bucket")

    def __init__(
        self,
        line: AcksLine,
        bucket: int,
        hosted: Hosted,
        end: Offset,
        acks: int,
        answered: Answered,
        reply: bytes | None,
    ) -> None:
        self._line, self.bucket, self._hosted, self._end, self._acks = line, bucket, hosted, end, acks
        self._answered, self._reply = answered, reply
        self._error: ErrorCode | None = None
        if acks == 1:
            hosted.when_flushed(end, self.time_is_up)
        else:
            hosted.when_committed(end, self.time_is_up)

    def outcome(self) -> Any:
        error = self._error or NONE
        if error is NONE and self._reply is not None:
            return self._reply
        return self._answered([error])

    def time_is_up(self) -> None:
        # Concluded at once: by the time it is told this node may lead again, with another log.
        if self._error is not None:
            return
        hosted, state = self._hosted, self._hosted.state
        if (
            self._acks == -1
            and state.high_watermark >= self._end
            and len(state.isr) >= state.min_isr
            and state.leading
            and hosted.log is not None
        ):
            self._error = NONE  # what `conclusion` would find, for nearly everybody
        else:
            self._error = conclusion(hosted, self._end, self._acks)
        self._line.finished(self)


class AwaitedBatches(Later):
    """A produce that waits for several batches."""

    __slots__ = ("_acks", "_answered", "_awaited", "_errors", "_left", "_line", "bucket")

    def __init__(
        self, line: AcksLine, bucket: int, awaited: list[tuple[Hosted, Offset]], acks: int, answered: Answered
    ) -> None:
        self._line, self.bucket, self._awaited, self._acks, self._answered = line, bucket, awaited, acks, answered
        self._errors: list[ErrorCode | None] = [None] * len(awaited)
        self._left = len(awaited)
        for index, (hosted, end) in enumerate(awaited):
            if acks == 1:
                hosted.when_flushed(end, partial(self._settled, index))
            else:
                hosted.when_committed(end, partial(self._settled, index))

    def outcome(self) -> Any:
        return self._answered(cast(list[ErrorCode], self._errors))

    def _settled(self, index: int) -> None:
        if self._errors[index] is None:
            self._errors[index] = conclusion(*self._awaited[index], self._acks)
            self._left -= 1
            if not self._left:
                self._line.finished(self)

    def time_is_up(self) -> None:
        for index in range(len(self._awaited)):
            self._settled(index)


Awaited = AwaitedBatch | AwaitedBatches


class AcksLine:
    """All produces of a node that wait: their deadlines, and who is answered next.

    Nobody is answered from within a partition's doing, for an answer may start the connection's next request; one
    callback of the loop answers all that became ready in another one. Deadlines lie in buckets of ten milliseconds
    with one timer for all: nearly every produce is answered long before its own.
    """

    __slots__ = ("_answering", "_buckets", "_loop", "_ready", "_rings_at", "_timer")

    def __init__(self) -> None:
        self._buckets: dict[int, dict[Awaited, None]] = {}
        self._ready: deque[Awaited] = deque()
        self._answering = False
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def wait(
        self,
        awaited: list[tuple[Hosted, Offset]],
        acks: int,
        timeout_ms: int,
        answered: Answered,
        reply: bytes | None = None,
    ) -> Awaited:
        """`reply` may be given when it is known already what to say if all goes well."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        bucket = int(loop.time() * _BUCKETS_A_S + max(0, timeout_ms) * _BUCKETS_A_S / 1_000) + 1
        one: Awaited
        if len(awaited) == 1:
            hosted, end = awaited[0]
            one = AwaitedBatch(self, bucket, hosted, end, acks, answered, reply)
        else:
            one = AwaitedBatches(self, bucket, awaited, acks, answered)
        members = self._buckets.get(bucket)
        if members is None:
            members = self._buckets[bucket] = {}
            if self._timer is None or bucket < self._rings_at:
                self._ring_at(bucket)
        members[one] = None
        return one

    def finished(self, one: Awaited) -> None:
        members = self._buckets.get(one.bucket)
        if members is not None:
            members.pop(one, None)
            if not members:
                del self._buckets[one.bucket]
        self._ready.append(one)
        if not self._answering:
            self._answering = True
            assert self._loop is not None, "somebody waited"
            self._loop.call_soon(self._answer)

    def _answer(self) -> None:
        """Answers those who are ready, some at a time: the loop has others to serve."""
        ready = self._ready
        try:
            for _ in range(min(len(ready), _ANSWERS_A_TURN)):
                ready.popleft().when_ready()
        finally:
            self._answering = bool(ready)
            if ready:
                assert self._loop is not None, "somebody waited"
                self._loop.call_soon(self._answer)

    def _ring_at(self, bucket: int) -> None:
        assert self._loop is not None, "somebody waits"
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = bucket
        self._timer = self._loop.call_later(max(0.0, bucket / _BUCKETS_A_S - self._loop.time()), self._rang)

    def _rang(self) -> None:
        assert self._loop is not None, "somebody waited"
        self._timer = None
        now = self._loop.time() * _BUCKETS_A_S
        for bucket in [bucket for bucket in self._buckets if bucket <= now]:
            for one in list(self._buckets.pop(bucket)):
                one.time_is_up()
        if self._buckets:
            self._ring_at(min(self._buckets))
