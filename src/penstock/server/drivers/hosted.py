"""One partition as this node hosts it: its log, its replication state, and who waits for either to move."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.model.errors import KAFKA_STORAGE_ERROR, Refused
from penstock.model.ids import Offset

if TYPE_CHECKING:
    from penstock.kernels import BatchHeader
    from penstock.model.config import TopicSettings
    from penstock.model.ids import Millis, PartitionKey, TopicPartition
    from penstock.replication.fetch_session import Interest
    from penstock.replication.partition import Partition
    from penstock.storage.log import Log, Ticket

Waiter = Callable[[], None]


class Hosted:
    """Holds what belongs together; decides nothing. `log` is None while its directory is offline."""

    __slots__ = (
        "key", "log", "name", "on_moved", "on_unsynced", "settings", "state", "waiting", "waiting_sync", "watchers",
    )  # fmt: skip

    def __init__(
        self,
        key: PartitionKey,
        name: TopicPartition,
        state: Partition,
        log: Log | None,
        settings: TopicSettings,
        on_moved: Callable[[Interest], None],
        on_unsynced: Callable[[Hosted], None],
    ) -> None:
        self.key, self.name, self.state, self.log, self.settings = key, name, state, log, settings
        self.on_moved, self.on_unsynced = on_moved, on_unsynced
        self.waiting: deque[tuple[int, Waiter]] = deque()
        self.waiting_sync: deque[tuple[int, Waiter]] = deque()
        self.watchers: dict[Interest, None] = {}
        if log is not None:
            state.high_watermark = log.committed

    @property
    def syncs_before_ack(self) -> bool:
        """`flush.messages=1` means that nothing counts until it is on the platter."""
        return self.settings.flush_messages == 1

    def require_log(self) -> Log:
        log = self.log
        if log is None:
            raise Refused(KAFKA_STORAGE_ERROR, f"the log directory of {self.name} is offline on this broker")
        return log

    def append(self, batch: memoryview | bytearray, header: BatchHeader, acks: int, now: Millis) -> Ticket:
        """Ask, do, tell for one admitted batch. Runs to completion: nothing may come in between."""
        log = self.require_log()
        epoch = self.state.check_append(acks)
        if header.producer_id >= 0:
            known = log.producers.check(header, now)
            if known is not None:
                return known
        ticket = log.append(batch, header, epoch=epoch, now=now)
        self.grew(now)
        return ticket

    def grew(self, now: Millis) -> None:
        """Tells replication how far our log counts now, and wakes whoever that concerns."""
        log = self.require_log()
        if log.messages_unflushed >= self.settings.flush_messages:
            self.on_unsynced(self)
        end = log.flushed if self.syncs_before_ack else log.written
        if self.state.appended(end, now):
            self.committed()
        elif self.state.followers:
            self.moved()

    def committed(self) -> None:
        """The high watermark moved: the log may show more, and produces that waited for it can be answered."""
        high_watermark = self.state.high_watermark
        self.require_log().commit_to(high_watermark)
        waiting = self.waiting
        while waiting and waiting[0][0] <= high_watermark:
            waiting.popleft()[1]()
        self.moved()

    def moved(self) -> None:
        for interest in self.watchers:
            self.on_moved(interest)

    def when_committed(self, end: Offset, waiter: Waiter) -> None:
        """Calls `waiter` once, when everything before `end` is committed or this node stops leading."""
        self.waiting.append((end, waiter))

    def when_flushed(self, end: Offset, waiter: Waiter) -> None:
        """Calls `waiter` once, when everything before `end` is synced here or this node stops leading."""
        self.waiting_sync.append((end, waiter))

    def synced(self, to: Offset, now: Millis) -> None:
        """The log is on the platter up to `to`."""
        log = self.log
        if log is None:
            return
        log.mark_flushed(to)
        waiting = self.waiting_sync
        while waiting and waiting[0][0] <= to:
            waiting.popleft()[1]()
        if self.syncs_before_ack and self.state.appended(log.flushed, now):
            self.committed()

    def release(self) -> None:
        """Answers everybody who waits: this node does not lead the partition any more, or the partition is gone."""
        waiting = [*self.waiting, *self.waiting_sync]
        self.waiting.clear()
        self.waiting_sync.clear()
        for _, waiter in waiting:
            waiter()
        self.moved()
