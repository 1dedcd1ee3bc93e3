"""One assigned partition: where it is read, what is buffered of it, and what it waits for.

Pure. `version` rises whenever what was asked or fetched before has lost its meaning (a seek, a reset, a new leader);
replies carry the version they were asked under and are dropped when it has moved on.

| | UNPLACED | RESETTING | VALIDATING | READY | FAILED |
|---|---|---|---|---|---|
| an offset is committed | VALIDATING if its epoch is known, else READY | | | | |
| nothing is committed | RESETTING; FAILED when offset_reset is none | | | | |
| the offset of a time was found | | READY | | | |
| the leader has what was read | | | READY | | |
| the leader has lost some of it | | | READY where it ends; FAILED when offset_reset is none | | |
| the leader cannot be asked for epochs | | | READY | | |
| another leader epoch shows | | | | VALIDATING if anything was read under an older one | |
| what is asked for is not in the log | | | | RESETTING; FAILED when offset_reset is none | |
| the application seeks | READY, RESETTING | READY, RESETTING | READY, RESETTING | READY, RESETTING | READY, RESETTING |
| trouble that passes | asks again | asks again | asks again | asks again | |
| trouble that does not | FAILED | FAILED | FAILED | FAILED | |
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.consumer.batches import Batch
from penstock.client.errors import ClientError
from penstock.kernels import BadBytes, ConsumerRecord
from penstock.model.errors import CORRUPT_MESSAGE
from penstock.model.ids import TopicPartition
from penstock.protocol.wire import Malformed

if TYPE_CHECKING:
    from penstock.kernels import ColumnSink


class Phase(Enum):
    """What has to happen before records of a partition can be fetched."""

    UNPLACED = auto()  # nobody said yet where to begin: ask for the committed offset, else reset
    RESETTING = auto()  # the offset of `reset_to` has to be looked up
    VALIDATING = auto()  # a new leader may have lost records that we have read: ask where our epoch ended
    READY = auto()
    FAILED = auto()  # the application has to decide; `failure` says what


class CorruptBatch(ClientError):
    """Bytes that a broker sent are no records. Reading stops before them; seek past `end` to leave them out."""


class Run(NamedTuple):
    """A stretch of records that was taken from one batch; enough to put its end back."""

    partition: AssignedPartition
    placement: int
    batch: Batch
    start: int
    taken: int
    epoch_before: int


class AssignedPartition:
    """The consumer's side of one partition, from its assignment to its revocation."""

    __slots__ = (
        "batches",
        "buffered_bytes",
        "busy",
        "committed",
        "failure",
        "failures",
        "fetch_offset",
        "gone",
        "high_watermark",
        "last_stable_offset",
        "leader_epoch",
        "leaving",
        "log_start",
        "paused",
        "phase",
        "placement",
        "position",
        "position_epoch",
        "processed",
        "processed_epoch",
        "queued",
        "read_replica",
        "read_replica_until_ms",
        "reset_to",
        "retry_at_ms",
        "topic_id",
        "tp",
        "version",
    )

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.topic_id = b""
        self.phase = Phase.UNPLACED
        self.version = 0
        self.placement = 0  # rises when the position jumps, so that records from before are not put back
        self.position = -1  # the next record that the application gets
        self.position_epoch = -1  # the leader epoch of the record before it
        self.fetch_offset = -1  # the next record to ask for; ahead of the position by what is buffered
        self.leader_epoch = -1  # the newest we have heard of
        self.reset_to: int | None = None  # a timestamp, or EARLIEST or LATEST
        self.batches: deque[Batch] = deque()
        self.buffered_bytes = 0
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start = -1
        self.paused = False
        self.leaving = False  # about to be revoked: gives nothing any more
        self.gone = False  # revoked or unassigned
        self.processed = -1  # up to here the application is done, as far as can be known
        self.processed_epoch = -1
        self.committed = -1  # what we have committed last
        self.queued = False  # stands in the line of partitions that have something
        self.busy = False  # somebody is looking up where to read
        self.failure: ClientError | None = None
        self.failures = 0  # in a row, for the backoff
        self.retry_at_ms = 0.0
        self.read_replica: int | None = None
        self.read_replica_until_ms = 0.0

    def __repr__(self) -> str:
        return f"<{self.tp} {self.phase.name.lower()} at {self.position}>"

    @property
    def fetchable(self) -> bool:
        return self.phase is Phase.READY and self.may_give

    @property
    def awaits_fetch(self) -> bool:
        """Whether what was fetched is still of use; a pause only puts off when."""
        return self.phase is Phase.READY and not self.gone

    @property
    def may_give(self) -> bool:
        return not (self.paused or self.leaving or self.gone)

    # -- where it is read

    def place(self, offset: int, epoch: int = -1) -> None:
        """Reads from `offset` on. With the epoch of the record before it the leader is asked whether that is so."""
        self._forget()
        self.position = self.fetch_offset = self.processed = offset
        self.position_epoch = self.processed_epoch = epoch
        self.phase = Phase.READY if epoch < 0 else Phase.VALIDATING

    def reset(self, timestamp: int) -> None:
        """Reads from wherever `timestamp` is found; what was known before is void."""
        self._forget()
        self.position = self.fetch_offset = self.position_epoch = self.processed = -1
        self.reset_to = timestamp
        self.phase = Phase.RESETTING

    def fail(self, failure: ClientError) -> None:
        """Nothing more is fetched until the application seeks. What is buffered is given before the failure is."""
        self.phase = Phase.FAILED
        self.failure = failure

    def led_anew(self, topic_id: bytes, leader_epoch: int) -> None:
        """Metadata shows another leader epoch: what was read under an older one may be gone from the log."""
        if topic_id != self.topic_id:
            # A topic of this name was made anew, and epochs count from the beginning.
            if self.topic_id:
                self.discard()  # what was fetched is of the former one
                self.position_epoch = -1
            self.topic_id = topic_id
            self.leader_epoch = -1
        if leader_epoch <= self.leader_epoch:
            return
        first_seen = self.leader_epoch < 0
        self.leader_epoch = leader_epoch
        if first_seen:
            return
        self.read_replica = None
        if self.phase is Phase.READY and 0 <= self.position_epoch < leader_epoch:
            self.discard()
            self.phase = Phase.VALIDATING

    def discard(self) -> None:
        """Drops what is buffered, to be fetched again from the position on."""
        self.version += 1
        self.batches.clear()
        self.buffered_bytes = 0
        self.fetch_offset = self.position

    def _forget(self) -> None:
        self.discard()
        self.placement += 1
        self.reset_to = self.failure = self.read_replica = None
        self.failures = 0
        self.retry_at_ms = 0.0

    def troubled(self, retry_at_ms: float) -> None:
        """Asking went wrong in a way that time may heal."""
        self.failures += 1
        self.retry_at_ms = retry_at_ms

    # -- what is buffered

    def put(self, batches: Iterable[Batch]) -> None:
        """Batches that a fetch brought, the first of which holds `fetch_offset` or comes after it."""
        for batch in batches:
            self.batches.append(batch)
            self.buffered_bytes += batch.size
            self.fetch_offset = batch.end

    def recount(self) -> None:
        """Batches have grown by being unpacked elsewhere."""
        self.buffered_bytes = sum(batch.size for batch in self.batches)

    @property
    def has_something(self) -> bool:
        """Whether a poll could give records or an error."""
        return self.failure is not None or (bool(self.batches) and not self.batches[0].unpacking)

    def take(self, limit: int, into: list[ConsumerRecord]) -> list[Run]:
        """Moves up to `limit` records to `into`; the position follows. A batch that is broken becomes the failure."""
        runs: list[Run] = []
        while limit > 0 and self._skips():
            batch = self.batches[0]
            records = batch.records
            if records is None:
                records = self._decoded(batch)
                if records is None:
                    break
            start = batch.cursor
            count = len(records) - start
            if count > limit:
                count = limit
                into += records[start : start + count]
            else:
                into += records[start:] if start else records
            runs.append(Run(self, self.placement, batch, start, count, self.position_epoch))
            limit -= count
            self._advance(batch, start + count, count)
        return runs

    def pour(self, limit: int, sink: ColumnSink) -> int:
        """Moves up to `limit` records to Arrow columns; returns how many. Fewer when the columns are full."""
        poured = 0
        while limit > poured and self._skips():
            batch = self.batches[0]
            assert batch.header is not None, "what shows nothing was skipped"
            try:
                count = batch.pour(sink, self.position, limit - poured)
            except (BadBytes, Malformed) as broken:
                self._break(batch, broken)
                break
            poured += count
            if count:
                self.position_epoch = batch.header.leader_epoch
            if sink.finished:
                self._drop(batch)
                continue
            if count:
                # Whoever polls for records next decodes the batch anew from here.
                self.position = sink.last_offset + 1
                batch.records = None
            if sink.full:
                break
        return poured

    def put_back(self, run: Run, given: int) -> None:
        """Undoes a take after `given` records of `run`; later runs must have been put back before."""
        if run.placement != self.placement or self.gone:
            return
        batch = run.batch
        if not self.batches or self.batches[0] is not batch:
            self.batches.appendleft(batch)
            self.buffered_bytes += batch.size
        assert batch.records is not None, "a run is taken from decoded records"
        assert batch.header is not None, "a run is taken from decoded records"
        batch.cursor = run.start + given
        self.position = batch.records[batch.cursor].offset
        self.position_epoch = batch.header.leader_epoch if given else run.epoch_before

    def _skips(self) -> bool:
        """Leaves out what shows nothing; True when records may follow."""
        while self.batches:
            batch = self.batches[0]
            if batch.unpacking:
                return False
            if batch.broken is not None:
                self._break(batch, batch.broken)
                return False
            if batch.header is not None:
                return True
            self._drop(batch)
        return False

    def _decoded(self, batch: Batch) -> list[ConsumerRecord] | None:
        size = batch.size
        try:
            batch.records = batch.decode(self.tp.topic, self.tp.partition, self.position)
        except (BadBytes, Malformed) as broken:
            self._break(batch, broken)
            return None
        self.buffered_bytes += batch.size - size
        batch.cursor = 0
        return batch.records

    def _advance(self, batch: Batch, cursor: int, count: int) -> None:
        assert batch.records is not None, "records were taken"
        assert batch.header is not None, "records were taken"
        if count:
            self.position_epoch = batch.header.leader_epoch
        batch.cursor = cursor
        if cursor == len(batch.records):
            self._drop(batch)
        else:
            self.position = batch.records[cursor - 1].offset + 1

    def _drop(self, batch: Batch) -> None:
        self.position = max(self.position, batch.end)
        self.batches.popleft()
        # A batch may have grown in a thread since it was counted.
        self.buffered_bytes = max(0, self.buffered_bytes - batch.size) if self.batches else 0

    def _break(self, batch: Batch, cause: Exception) -> None:
        self.batches.clear()
        self.buffered_bytes = 0
        beyond = f"seek to {batch.end} to leave them out" if batch.end > self.position else "seek past them to go on"
        self.fail(
            CorruptBatch(
                f"the records at offset {self.position} cannot be read: {cause}; {beyond}",
                where=str(self.tp),
                error=CORRUPT_MESSAGE,
                retriable=False,
            )
        )
