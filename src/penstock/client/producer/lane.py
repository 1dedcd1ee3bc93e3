"""One partition as the producer sees it: its batches, their order and their sequence numbers. Pure.

A batch is filled, sealed, sent perhaps several times, and settled once; its lane says when it is its turn.

Order is kept by three rules. A batch that must be sent again goes before everything that was never sent, and waits
while an earlier one is out. Sequence numbers are given at the first sending and kept by every repetition, so a broker
that has the batch already says so. When a batch fails for good there is a hole, and brokers refuse what follows: then
the lane is `broken`, learns the fate of what is in doubt, and goes on from 0 under a higher epoch (KIP-360).

With `max_in_flight=1` a lane has one batch out, whichever brokers lead: that keeps the order without sequence numbers,
and at brokers that have forgotten the producer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable

from penstock.client.errors import ClientError
from penstock.client.producer.delivery import NO_OFFSET, Report, Span, Wake
from penstock.kernels import OpenBatch, OpenLane, RecordsBuilder
from penstock.protocol.batch import NO_PRODUCER, NO_SEQUENCE, read_records, resequence, seal

NOT_SENT = -1

SEQUENCE_MASK = 0x7FFFFFFF
"""Sequence numbers go round after 2^31 - 1."""

REMEMBERED_BATCHES = 5
"""So many batches of a producer a broker knows again. With more of them out, to an old leader and to a new one, the
first to be repeated would be taken for a hole."""


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
    def numbered(self) -> bool:
        """Whether it was sent with sequence numbers, which nothing else can fill."""
        return self.sequence != NO_SEQUENCE and self.order != NOT_SENT

    @property
    def size(self) -> int:
        """Bytes on the wire when sealed, of records before."""
        if self.sealed is not None:
            return len(self.sealed)
        return 0 if self.builder is None else self.builder.size

    def seal(
        self,
        codec: int,
        level: int | None,
        producer: tuple[int, int] | None,
        sequence: int,
        transactional: bool = False,
    ) -> None:
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
            transactional=transactional,
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


class Lane(OpenLane):
    """The batches of one partition. `open` takes records, `queue` is to be sent, `flying` waits for an answer."""

    __slots__ = (
        "_next_order", "_next_sequence", "broken", "expected", "failures", "flying", "known", "leader", "one_at_a_time",
        "partition", "producer", "queue", "resting", "topic",
    )  # fmt: skip

    open: Batch | None

    def __init__(self, topic: str, partition: int, *, one_at_a_time: bool = False) -> None:
        self.topic, self.partition = topic, partition
        self.one_at_a_time = one_at_a_time
        self.open = None
        self.queue: deque[Batch] = deque()
        self.flying: list[Batch] = []
        self.leader: int | None = None
        self.resting = False  # waits out a backoff
        self.failures = 0  # in a row
        self.broken = False
        self.producer: tuple[int, int] | None = None
        self.expected = 0  # the sequence that the broker must take next
        self.known = False  # brokers have something of this epoch
        self._next_sequence = 0
        self._next_order = 0

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def close_open(self) -> None:
        """No more records into the open batch."""
        if self.open is not None:
            self.queue.append(self.open)
            self.open = None

    def has_work(self) -> bool:
        return bool(self.queue) or (self.open is not None and self.open.due)

    def next_batch(self, producer: tuple[int, int] | None) -> Batch | None:
        """The batch that may be sent now, or None. `producer` is the present identity; None if not idempotent."""
        if self.resting:
            return None
        if not self.queue:
            if self.open is None or not self.open.due:
                return None
            self.close_open()
        head = self.queue[0]
        if self.flying:
            if self.one_at_a_time:
                return None  # the one that is out may be at a leader of before, and has to come first all the same
            if self.broken or (head.order != NOT_SENT and self.flying[0].order < head.order):
                return None
            if head.order == NOT_SENT and producer is not None:
                if self.producer != producer:
                    return None  # what is out belongs to the epoch before
                if self._next_order - self.flying[0].order >= REMEMBERED_BATCHES:
                    return None  # also when some of those in between were answered: the broker counts them too
                if not self.known:
                    # From a producer that it does not know a broker takes any number: if the first were lost on its
                    # way, the second would be taken before it, and the first never.
                    return None
        if self.broken and not head.doubtful:
            return None
        return head

    @property
    def needs_new_epoch(self) -> bool:
        """Broken, and nothing is left in doubt."""
        return self.broken and not self.flying and not (self.queue and self.queue[0].doubtful)

    def launch(self, batch: Batch, producer: tuple[int, int] | None, seal: Callable[[Batch, int], None]) -> None:
        """The head of the queue is being sent. `seal` packs it, the first time, with a sequence of `self.producer`."""
        assert batch is self.queue[0]
        self.queue.popleft()
        if batch.order == NOT_SENT:
            batch.order = self._next_order
            self._next_order += 1
        if batch.sealed is None:
            seal(batch, self._take_sequence(batch, producer))
        batch.flying = True
        batch.attempts += 1
        self.flying.append(batch)
        if len(self.flying) > 1 and self.flying[-2].order > batch.order:
            self.flying.sort(key=lambda flying: flying.order)

    def _take_sequence(self, batch: Batch, producer: tuple[int, int] | None) -> int:
        if producer is None:
            return NO_SEQUENCE
        if batch.sequence != NO_SEQUENCE:
            return batch.sequence  # a piece of a batch that had one
        if self.producer != producer:
            assert not self.flying, "epochs do not overlap"
            self.producer, self._next_sequence, self.expected, self.known = producer, 0, 0, False
        assert batch.builder is not None
        sequence = self._next_sequence
        self._next_sequence = (sequence + batch.builder.count) & SEQUENCE_MASK
        return sequence

    def land(self, batch: Batch) -> None:
        """The answer came, or will not come."""
        self.flying.remove(batch)
        batch.flying = False

    def accepted(self, batch: Batch) -> None:
        self.failures = 0
        if batch.sequence != NO_SEQUENCE:
            end = (batch.sequence + batch.count) & SEQUENCE_MASK
            if _reaches(end, self.expected):
                self.expected = end
            self.known = True

    def came_too_late(self, batch: Batch) -> bool:
        """Whether the broker has taken what comes after it, or would have had to take this one next."""
        return _reaches(self.expected, batch.sequence)

    def lost(self, batch: Batch) -> None:
        """A batch was given up after it was sent: its sequence numbers will never be filled."""
        if batch.numbered:
            self.broken = True

    def again(self, batch: Batch) -> None:
        """To be sent again, before everything that was sent after it or never."""
        at = 0
        for other in self.queue:
            if other.order == NOT_SENT or other.order > batch.order:
                break
            at += 1
        self.queue.insert(at, batch)

    def replace(self, batch: Batch, pieces: list[Batch]) -> None:
        """The pieces of a batch take its place, with its sequence numbers."""
        sequence = batch.sequence
        for piece in pieces:
            if sequence != NO_SEQUENCE:
                assert piece.builder is not None
                piece.sequence = sequence
                sequence = (sequence + piece.builder.count) & SEQUENCE_MASK
        # Orders are whole numbers, and the pieces stand between two of them: everything later moves up.
        extra = len(pieces) - 1
        for later in (*self.queue, *self.flying):
            if later.order > batch.order:
                later.order += extra
        for at, piece in enumerate(pieces):
            piece.order = batch.order + at
            self.again(piece)
        self._next_order += extra

    def drop(self, batch: Batch) -> None:
        """A batch that is not flying leaves the lane."""
        if batch is self.open:
            self.open = None
        else:
            self.queue.remove(batch)

    def begin_epoch(self, producer: tuple[int, int]) -> None:
        """Goes on under another epoch: what was numbered and is not out is numbered anew from 0."""
        assert not self.flying
        self.producer, self.broken, self.expected, self.known = producer, False, 0, False
        sequence = 0
        for batch in self.queue:
            if batch.sequence == NO_SEQUENCE:
                break
            if batch.sealed is not None:
                batch.renumber(producer, sequence)
                sequence += batch.count
            else:
                assert batch.builder is not None
                batch.sequence = sequence
                sequence += batch.builder.count
            sequence &= SEQUENCE_MASK
        self._next_sequence = sequence


def _reaches(sequence: int, other: int) -> bool:
    """Whether a sequence number is as far as another, or farther, on their way round."""
    return (sequence - other) & SEQUENCE_MASK <= SEQUENCE_MASK // 2
