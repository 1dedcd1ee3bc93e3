"""One partition as this node hosts it: its log, its replication state, and who waits for either to move."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.kernels import read_header
from penstock.model.errors import KAFKA_STORAGE_ERROR, Refused
from penstock.model.ids import Offset
from penstock.protocol.control import Marker, marker_batch
from penstock.replication.acks import ALL_IN_SYNC
from penstock.storage.producers import read_marker

if TYPE_CHECKING:
    from penstock.kernels import BatchHeader
    from penstock.model.config import TopicSettings
    from penstock.model.ids import Millis, NodeId, PartitionKey, TopicPartition
    from penstock.replication.fetch_session import Watcher
    from penstock.replication.isr import Follower, Session
    from penstock.replication.partition import Partition
    from penstock.server.partitions.topic_traffic import TopicTraffic
    from penstock.storage.log import Log
    from penstock.storage.producers import Marker as LogMarker
    from penstock.storage.tickets import Ticket
    from penstock.storage.verification import Verification

Waiter = Callable[[], None]

_NOBODY: Final[deque[tuple[int, Waiter]]] = deque()
"""Nobody waits: an empty queue of its own takes more memory than all the rest of an idle partition here."""


class Guard(NamedTuple):
    """What a batch of a transaction comes with: what its coordinator was asked by, and whether that was needed."""

    entry: Verification | None
    verifies: bool = True


@lru_cache(maxsize=64)
def _end_of(
    producer_id: int, producer_epoch: int, commits: bool, coordinator_epoch: int, now: Millis
) -> tuple[bytes, BatchHeader, LogMarker | None]:
    """The batch that ends a transaction, before it has a place: the same in all partitions of the transaction."""
    batch = marker_batch(
        Marker(commits, coordinator_epoch),
        base_offset=0,
        leader_epoch=0,
        timestamp=now,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    header = read_header(batch)
    return batch, header, read_marker(header, batch)


class House(Protocol):
    """Whom a hosted partition tells."""

    committed_since_checkpoint: bool
    hurries_followers: bool
    """Whether followers are told of a high watermark at once: consumers read from them."""

    def may_join(self, hosted: Hosted) -> None:
        """A follower has caught up and may come into the in-sync set."""

    def unsynced(self, hosted: Hosted) -> None:
        """Enough was written that it should be synced."""

    def start_moved(self, hosted: Hosted) -> None:
        """The log begins elsewhere than before."""

    def cut(self, hosted: Hosted) -> None:
        """The log lost its end."""


class Hosted:
    """Holds what belongs together; decides nothing. `log` is None while its directory is offline."""

    __slots__ = (
        "_house", "behind", "gone", "key", "log", "moving", "name", "settings", "state", "syncs_held", "traffic",
        "unsynced_since", "waiting", "waiting_deletion", "waiting_sync", "watchers",
    )  # fmt: skip

    def __init__(
        self,
        key: PartitionKey,
        name: TopicPartition,
        state: Partition,
        log: Log | None,
        settings: TopicSettings,
        house: House,
        traffic: TopicTraffic,
    ) -> None:
        self.key, self.name, self.state, self.log, self.settings = key, name, state, log, settings
        self._house, self.traffic = house, traffic
        self.waiting = self.waiting_sync = _NOBODY
        self.waiting_deletion: list[Waiter] = []
        self.watchers: dict[Watcher, None] = {}
        self.unsynced_since: int | None = None
        self.behind = False  # the published image gives it another role than it has; its turn comes within moments
        self.gone = False  # deleted, or given to other brokers; whoever still has a handle must look it up again
        # While a copy is made in another directory nobody may rewrite what was copied: compaction waits.
        self.moving = False
        # For the moment before the copy takes over: what is synced in the log must be synced in the copy before.
        self.syncs_held = False
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
        epoch = self.state.check_append(acks)
        log = self.log or self.require_log()
        if header.producer_id >= 0:
            known = log.known_batch(header)
            if known is not None:
                return known
        ticket = log.append(batch, header, epoch, now)
        self.grew(now)
        return ticket

    def append_transactional(
        self, batch: memoryview | bytearray, header: BatchHeader, acks: int, now: Millis, guard: Guard
    ) -> Ticket:
        """The same for a batch of a transaction, which has to be open or to begin with this batch by the guard."""
        epoch = self.state.check_append(acks)
        log = self.log or self.require_log()
        known = log.known_in_transaction(header, guard.entry, verifies=guard.verifies)
        if known is not None:
            return known
        ticket = log.append(batch, header, epoch, now)
        self.grew(now)
        return ticket

    def append_coordinated(
        self, batch: memoryview | bytearray, header: BatchHeader, now: Millis, guard: Guard
    ) -> Ticket:
        """The same for what a coordinator writes here as part of a producer's transaction."""
        epoch = self.state.check_append(ALL_IN_SYNC)
        log = self.log or self.require_log()
        log.producers.check_coordinated(header, guard.entry, verifies=guard.verifies)
        ticket = log.append(batch, header, epoch, now)
        self.grew(now)
        return ticket

    def write_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commits: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now: Millis,
    ) -> Ticket:
        """Ends a producer's transaction here. Its coordinator may say so again, and newer coordinators may."""
        epoch = self.state.check_append(ALL_IN_SYNC)
        log = self.log or self.require_log()
        log.producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
        batch, header, marker = _end_of(producer_id, producer_epoch, commits, coordinator_epoch, now)
        ticket = log.append(bytearray(batch), header, epoch, now, marker)
        self.grew(now)
        return ticket

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, bumps_epoch: bool, now: Millis
    ) -> Verification | None:
        """What to append with once the coordinator of a transaction has agreed; None where it is open already."""
        self.state.check_leads()
        return self.require_log().producers.begin_verification(
            producer_id, epoch, sequence, bumps_epoch=bumps_epoch, now=now
        )

    def counted_end(self) -> Offset:
        """How far our own log counts for the high watermark."""
        log = self.log
        if log is None:
            return Offset(0)
        return log.flushed if self.syncs_before_ack else log.written

    def grew(self, now: Millis) -> None:
        """Tells replication how far our log counts now, and wakes whoever that concerns."""
        log, state, flush_messages = self.log or self.require_log(), self.state, self.settings.flush_messages
        if self.unsynced_since is None:
            self.unsynced_since = now
        if log.messages_unflushed >= flush_messages:
            self._house.unsynced(self)
        if state.appended(log.flushed if flush_messages == 1 else log.written, now):
            self.committed()
        if state.followers:
            self.moved()

    def committed(self) -> None:
        """The high watermark moved: the log may show more, and produces that waited for it can be answered."""
        high_watermark = self.state.high_watermark
        (self.log or self.require_log()).commit_to(high_watermark)
        self._house.committed_since_checkpoint = True
        waiting = self.waiting
        while waiting and waiting[0][0] <= high_watermark:
            waiting.popleft()[1]()
        if self.watchers:
            self._tell_readers()

    def _tell_readers(self) -> None:
        watchers, self.watchers = self.watchers, {}
        hurries = self._house.hurries_followers
        for interest in watchers:
            if interest.committed(hurries=hurries):
                self.watchers[interest] = None

    def follower_fetched(
        self,
        node: NodeId,
        follower: Follower,
        offset: Offset,
        *,
        log_start: Offset,
        broker_epoch: int,
        session: Session | None,
        now: Millis,
    ) -> None:
        """Tells replication what a follower's fetch proves: it has everything before `offset`."""
        state, log = self.state, self.log or self.require_log()
        deletes = self.waiting_deletion and follower.log_start != log_start
        moved = state.follower_at(
            follower,
            offset,
            log_start=log_start,
            broker_epoch=broker_epoch,
            leader_end=log.written,
            now=now,
            session=session,
        )
        if node not in state.isr and state.may_join(node, now):
            self._house.may_join(self)
        if moved:
            self.committed()
        if deletes:
            self.followers_deleted()

    def time_passed(self, now: Millis) -> None:
        """Looks whether somebody is waited for who need not be any more."""
        if self.log is not None and self.state.time_passed(now):
            self.committed()

    def followers_deleted(self) -> None:
        """A follower's log start moved; each waiter looks whether that is enough for it."""
        for waiter in list(self.waiting_deletion):
            waiter()

    def moved(self) -> None:
        """Tells whoever watches, once: they look before they watch again, so those who are gone cost nothing more."""
        if self.watchers:
            watchers, self.watchers = self.watchers, {}
            for interest in watchers:
                interest.moved()

    def start_moved(self) -> None:
        """Something was deleted at the log's beginning: readers here are told, and the leader if that is another."""
        self.moved()
        self._house.start_moved(self)

    def when_committed(self, end: Offset, waiter: Waiter) -> None:
        """Calls `waiter` once, when everything before `end` is committed or this node stops leading."""
        if self.waiting is _NOBODY:
            self.waiting = deque()
        self.waiting.append((end, waiter))

    def when_flushed(self, end: Offset, waiter: Waiter) -> None:
        """Calls `waiter` once, when everything before `end` is synced here or this node stops leading."""
        if self.waiting_sync is _NOBODY:
            self.waiting_sync = deque()
        self.waiting_sync.append((end, waiter))

    def synced(self, to: Offset, now: Millis) -> None:
        """The log is on the platter up to `to`."""
        log = self.log
        if log is None:
            return
        log.mark_flushed(to)
        self.unsynced_since = None if log.flushed >= log.written else now
        waiting = self.waiting_sync
        while waiting and waiting[0][0] <= to:
            waiting.popleft()[1]()
        if self.syncs_before_ack and self.state.appended(log.flushed, now):
            self.committed()

    def succeeded_by(self, log: Log, now: Millis) -> None:
        """The log was copied to another directory, which serves from now on. Who waits goes on waiting."""
        self.log = log
        if self.unsynced_since is None and log.flushed < log.written:
            self.unsynced_since = now
        # A sync of the old log that runs just now answers nobody: those who wait for one need one of this.
        self.let_sync()

    def cut(self) -> None:
        """The log lost its end: what is written there from now on is not flushed, whatever a checkpoint says."""
        self._house.cut(self)

    def want_sync(self) -> None:
        """Asks for everything that changed in the log to be synced soon."""
        self._house.unsynced(self)

    def hold_syncs(self) -> None:
        self.syncs_held = True

    def let_sync(self) -> None:
        """Ends `hold_syncs`, and asks for what was not done meanwhile."""
        self.syncs_held = False
        self._house.unsynced(self)

    def release(self) -> None:
        """Answers everybody who waits: this node does not lead the partition any more, or the partition is gone."""
        waiting = [waiter for _, waiter in (*self.waiting, *self.waiting_sync)]
        self.waiting.clear()
        self.waiting_sync.clear()
        for waiter in (*waiting, *self.waiting_deletion):
            waiter()
        self.moved()
