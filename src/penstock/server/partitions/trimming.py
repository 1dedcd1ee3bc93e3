"""DeleteRecords on one partition: the leader's log start moves at once, the answer waits for the live followers'."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
    REQUEST_TIMED_OUT,
    Refused,
)
from penstock.model.ids import Offset

if TYPE_CHECKING:
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.neighbours import Neighbours


def trim(hosted: Hosted, offset: int, neighbours: Neighbours, timeout_ms: int) -> Offset | asyncio.Future[Offset]:
    """Moves the log start to `offset`, -1 being the high watermark: the low watermark, or a future of it.

    Refused when it may not be; the future is refused when the followers do not come along in time, or this node stops
    leading.
    """
    hosted.state.check_read(-1)
    if hosted.settings.compacts and not hosted.settings.deletes:
        raise Refused(POLICY_VIOLATION, f"topic {hosted.name.topic!r} only compacts; records go by tombstones")
    target = hosted.require_log()
    to = target.committed if offset == -1 else Offset(offset)
    if to < 0 or to > target.committed:
        raise Refused(OFFSET_OUT_OF_RANGE, f"{to} is not between 0 and the high watermark {target.committed}")
    if to > target.log_start:
        target.advance_start(to)
        hosted.start_moved()
    low = hosted.state.low_watermark(target.log_start, neighbours.is_alive)
    return low if low >= to else _Wait(hosted, to, neighbours, timeout_ms).future


class _Wait:
    """Looks again whenever a follower tells another log start."""

    __slots__ = ("_hosted", "_neighbours", "_timer", "_to", "future")

    def __init__(self, hosted: Hosted, to: Offset, neighbours: Neighbours, timeout_ms: int) -> None:
        self._hosted, self._to, self._neighbours = hosted, to, neighbours
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Offset] = loop.create_future()
        self.future.add_done_callback(lambda _done: self._end())
        self._timer = loop.call_later(max(0, timeout_ms) / 1_000, self._fail, Refused(REQUEST_TIMED_OUT))
        hosted.waiting_deletion.append(self._look)

    def _look(self) -> None:
        hosted = self._hosted
        if not hosted.state.leading:
            self._fail(Refused(NOT_LEADER_OR_FOLLOWER))
        elif hosted.log is None:
            self._fail(Refused(KAFKA_STORAGE_ERROR))
        else:
            low = hosted.state.low_watermark(hosted.log.log_start, self._neighbours.is_alive)
            if low >= self._to and not self.future.done():
                self.future.set_result(low)

    def _fail(self, why: Refused) -> None:
        if not self.future.done():
            self.future.set_exception(why)

    def _end(self) -> None:
        self._timer.cancel()
        if self._look in self._hosted.waiting_deletion:
            self._hosted.waiting_deletion.remove(self._look)
