"""One batch on its way: filled, sealed, sent perhaps several times, and settled once."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from penstock.client.errors import ClientError
from penstock.client.producer.delivery import NO_OFFSET, Report, Span, Wake
from penstock.kernels import OpenBatch, RecordsBuilder
from penstock.protocol.batch import NO_PRODUCER, NO_SEQUENCE, read_records, resequence, seal

if TYPE_CHECKING:
    from penstock.client.producer.lane import Lane

NOT_SENT = -1


class Batch(OpenBatch):
    """Records of one partition that are sent together.

    `done` is told once, with `failure` or an offset. `order` numbers the batches of a lane by their first sending;
    `doubtful` means that it was sent and nobody knows whether the broker has it.
    """

    __slots__ = (
        "append_time", "attempts", "base_offset", "charge", "count", "counted", "deadline_ms", "done", "doubtful",
        "due", "failure", "flying", "lane", "last_error", "order", "pieces", "sealed", "sequence", "starts", "waiters",
    )  # fmt: skip

    def __init__(self, lane: Lane, builder: RecordsBuilder, charge: int, deadline_ms: float) -> None:
        self.lane = lane
        self.builder = builder
        self.charge = charge
        self.deadline_ms = deadline_ms
        self.count = 0  # known when sealed
        self.counted = False  # its bytes were put down to the sticky partition
        self.due = False  # has waited long enough for more records
        self.sealed: bytearray | None = None
        self.sequence = NO_SEQUENCE
        self.order = NOT_SENT
        self.attempts = 0
        self.flying = False
        self.doubtful = False
        self.last_error: ClientError | None = None
        self.done = False
        self.failure: ClientError | None = None
        self.base_offset = NO_OFFSET
        self.append_time = -1
        self.waiters: list[tuple[int, Wake]] = []
        self.callbacks = []
        self.pieces: list[Batch] = []
        self.starts: list[int] = []

    @property
    def size(self) -> int:
        """Bytes on the wire when sealed, of records before."""
        if self.sealed is not None:
            return len(self.sealed)
        return 0 if self.builder is None else self.builder.size

    def seal(self, codec: int, level: int | None, producer: tuple[int, int] | None, sequence: int) -> None:
        """Packs the records; with a producer (id, epoch) the batch can be told from every other."""
        assert self.builder is not None, "a batch is sealed once"
        self.sequence = sequence
        self.sealed = seal(
            self.builder,
            codec=codec,
            level=level,
            producer_id=NO_PRODUCER if producer is None else producer[0],
            producer_epoch=-1 if producer is None else producer[1],
            base_sequence=sequence,
        )
        self.count = self.builder.count
        self.builder = None

    def renumber(self, producer: tuple[int, int], sequence: int) -> None:
        """Another producer epoch and sequence, for a batch of which the broker surely has nothing."""
        assert self.sealed is not None
        assert not self.flying
        self.sequence = sequence
        self.doubtful = False
        resequence(self.sealed, producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence)

    def settle(self, base_offset: int, append_time: int, failure: ClientError | None) -> None:
        """Tells the outcome, once. Waking those who wait is the caller's, outside of any lock."""
        assert not self.done
        self.done = True
        self.base_offset, self.append_time, self.failure = base_offset, append_time, failure
        if self.builder is not None:
            self.count = self.builder.count
        self.builder = self.sealed = None

    def report(self, index: int, timestamp: int) -> Report:
        lane = self.lane
        offset = NO_OFFSET if self.base_offset < 0 else self.base_offset + index
        return Report(lane.topic, lane.partition, offset, timestamp if self.append_time < 0 else self.append_time)

    # Coming apart.

    def split(self) -> list[Batch]:
        """Two halves of a batch that the broker finds too large; deliveries follow their records."""
        assert self.sealed is not None
        assert self.count > 1
        records = read_records(self.sealed)
        middle = self.count // 2
        for start, stop in ((0, middle), (middle, self.count)):
            builder = RecordsBuilder(1 << 30)
            for record in records[start:stop]:
                taken = builder.append(record.timestamp, record.key, record.value, record.headers)
                assert taken, "half of a batch fits"
            self._piece(start, stop, builder)
        self.sealed = None
        self.waiters, self.callbacks, self.charge = [], [], 0
        return self.pieces

    def _piece(self, start: int, stop: int, builder: RecordsBuilder) -> None:
        share = self.charge * (stop - start) // self.count
        charge = share if start == 0 else self.charge - sum(piece.charge for piece in self.pieces)
        piece = Batch(self.lane, builder, charge, self.deadline_ms)
        piece.due, piece.attempts, piece.last_error = True, self.attempts, self.last_error
        piece.waiters = [(index - start, wake) for index, wake in self.waiters if start <= index < stop]
        piece.callbacks = [(index - start, at, call) for index, at, call in self.callbacks if start <= index < stop]
        self.pieces.append(piece)
        self.starts.append(start)

    def piece(self, index: int) -> tuple[Batch, int]:
        """The piece that holds the record at `index`, and its place there."""
        at = bisect_right(self.starts, index) - 1
        return self.pieces[at], index - self.starts[at]

    def wholes(self) -> list[Batch]:
        """The batches that this one has become."""
        return [whole for piece in self.pieces for whole in piece.wholes()] if self.pieces else [self]

    def failed_runs(self, first: int, count: int) -> list[tuple[int, int, ClientError]]:
        """(first, count, why) of those among `count` records from `first` on that were not delivered."""
        if not self.pieces:
            return [] if self.failure is None else [(first, count, self.failure)]
        found = []
        for piece, start in zip(self.pieces, self.starts, strict=True):
            begin, end = max(first, start), min(first + count, start + piece.count)
            if begin < end:
                found += [(at + start, run, why) for at, run, why in piece.failed_runs(begin - start, end - begin)]
        return found

    def spans(self, first: int, count: int) -> list[Span]:
        """Where `count` records from `first` on landed, without those that failed."""
        if not self.pieces:
            landed = self.done and self.failure is None
            offset = NO_OFFSET if self.base_offset < 0 else self.base_offset + first
            return [Span(self.lane.partition, offset, count)] if landed else []
        found = []
        for piece, start in zip(self.pieces, self.starts, strict=True):
            begin, end = max(first, start), min(first + count, start + piece.count)
            if begin < end:
                found += piece.spans(begin - start, end - begin)
        return found
