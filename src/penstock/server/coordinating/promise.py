"""What may leave the node only when the records behind it are committed, and who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.model.errors import (
    COORDINATOR_NOT_AVAILABLE,
    KAFKA_STORAGE_ERROR,
    MESSAGE_TOO_LARGE,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    RECORD_LIST_TOO_LARGE,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)

if TYPE_CHECKING:
    from penstock.coordinators.decision import Answer
    from penstock.model.ids import Offset
    from penstock.server.partitions.hosted import Hosted

_TOLD: Final = {
    UNKNOWN_TOPIC_OR_PARTITION: COORDINATOR_NOT_AVAILABLE,
    NOT_ENOUGH_REPLICAS: COORDINATOR_NOT_AVAILABLE,
    REQUEST_TIMED_OUT: COORDINATOR_NOT_AVAILABLE,
    NOT_LEADER_OR_FOLLOWER: NOT_COORDINATOR,
    KAFKA_STORAGE_ERROR: NOT_COORDINATOR,
    MESSAGE_TOO_LARGE: UNKNOWN_SERVER_ERROR,
    RECORD_LIST_TOO_LARGE: UNKNOWN_SERVER_ERROR,
}


def told(error: ErrorCode) -> ErrorCode:
    """What a client is told when its records could not be written: it knows coordinators, not partitions."""
    return _TOLD.get(error, error)


class Held:
    """A request whose connection waits for `future`. The token of a `Caller`."""

    __slots__ = ("future", "refuse")

    def __init__(self, refuse: Callable[[ErrorCode], object]) -> None:
        self.future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.refuse = refuse

    def answer(self, reply: object) -> None:
        if not self.future.done():
            self.future.set_result(reply)

    def fail(self, error: ErrorCode) -> None:
        if not self.future.done():
            self.future.set_result(self.refuse(error))


def release(answers: Sequence[Answer]) -> None:
    """Ends requests that were held back."""
    for token, reply in answers:
        assert isinstance(token, Held), "only requests that may be held back have a token"
        token.answer(reply)


def fail(answers: Sequence[Answer], error: ErrorCode) -> None:
    """What the answers stand on did not come true."""
    for token, _ in answers:
        assert isinstance(token, Held), "only requests that may be held back have a token"
        token.fail(error)


def is_committed(hosted: Hosted, end: Offset) -> bool:
    """Whether everything before `end` is committed, and by this node as the leader."""
    state = hosted.state
    return state.leading and hosted.log is not None and state.high_watermark >= end


class Promise:
    """A reply and answers that wait until everything before `end` is committed.

    When this node stops leading first, or `timeout_ms` pass, everybody is told so: the records are in the log then
    and may still come true.
    """

    __slots__ = ("_answers", "_end", "_held", "_hosted", "_reply", "_timer")

    def __init__(
        self,
        hosted: Hosted,
        end: Offset,
        reply: object | None,
        held: Held | None,
        answers: Sequence[Answer],
        timeout_ms: int,
    ) -> None:
        self._hosted, self._end, self._reply, self._held, self._answers = hosted, end, reply, held, answers
        self._timer = asyncio.get_running_loop().call_later(timeout_ms / 1_000, self._fail, REQUEST_TIMED_OUT)
        hosted.when_committed(end, self._look)

    def _look(self) -> None:
        if not is_committed(self._hosted, self._end):
            self._fail(NOT_LEADER_OR_FOLLOWER)
            return
        self._timer.cancel()
        if self._held is not None:
            self._held.answer(self._reply)
        release(self._answers)

    def _fail(self, error: ErrorCode) -> None:
        self._timer.cancel()
        if self._held is not None:
            self._held.fail(told(error))
        fail(self._answers, told(error))
