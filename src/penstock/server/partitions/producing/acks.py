"""Waits until the batches of a produce are what its acks promise, or time is up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from penstock.model.errors import NONE, ErrorCode
from penstock.replication.acks import decide_ack
from penstock.server.doors import Later

if TYPE_CHECKING:
    from penstock.model.ids import Offset
    from penstock.server.doors import Message
    from penstock.server.partitions.hosted import Hosted

Answered = Callable[[list[ErrorCode]], "bytes | Message"]
"""Makes the reply of what became of each batch, in their order."""


_BUCKETS_A_S: Final = 100
_ANSWERS_A_TURN: Final = 128


class AwaitedBatch(Later):
    """A produce that waits for one batch, as nearly all do.

    `reply` is what to send when all goes well, if that is known already. Without it, and after an error, `answered`
    makes the reply.
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
        self.when_ready, self.missed = None, False
        self._error: ErrorCode | None = None
        if acks == 1:
            hosted.when_flushed(end, self.conclude)
        else:
            hosted.when_committed(end, self.conclude)

    def outcome(self) -> bytes | Message:
        error = self._error or NONE
        if error is NONE and self._reply is not None:
            return self._reply
        return self._answered([error])

    def conclude(self) -> None:
        """The promise holds, the partition cannot keep it any more, or time is up; whichever comes first decides.

        It decides at once: by the time the reply is made this node may lead again, with another log.
        """
        if self._error is None:
            self._error = decide_ack(self._hosted, self._end, self._acks)
            self._line.finished(self)


class AwaitedBatches(Later):
    """A produce that waits for several batches."""

    __slots__ = ("_acks", "_answered", "_awaited", "_errors", "_left", "_line", "bucket")

    def __init__(
        self, line: AcksLine, bucket: int, awaited: list[tuple[Hosted, Offset]], acks: int, answered: Answered
    ) -> None:
        super().__init__()
        self._line, self.bucket, self._awaited, self._acks, self._answered = line, bucket, awaited, acks, answered
        self._errors: list[ErrorCode | None] = [None] * len(awaited)
        self._left = len(awaited)
        for index, (hosted, end) in enumerate(awaited):
            if acks == 1:
                hosted.when_flushed(end, partial(self._conclude_one, index))
            else:
                hosted.when_committed(end, partial(self._conclude_one, index))

    def outcome(self) -> bytes | Message:
        return self._answered(cast(list[ErrorCode], self._errors))

    def _conclude_one(self, index: int) -> None:
        if self._errors[index] is None:
            self._errors[index] = decide_ack(*self._awaited[index], self._acks)
            self._left -= 1
            if not self._left:
                self._line.finished(self)

    def conclude(self) -> None:
        """Time is up for those batches that nothing is known of yet."""
        for index in range(len(self._awaited)):
            self._conclude_one(index)


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
                ready.popleft().ready()
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
                one.conclude()
        if self._buckets:
            self._ring_at(min(self._buckets))
