"""One partition as the producer sees it: batches in order, and their sequence numbers. Pure.

Order is kept by three rules. A batch that must be sent again goes before everything that was never sent, and waits
while an earlier one is out. Sequence numbers are given at the first sending and kept by every repetition, so a broker
that has the batch already says so. When a batch fails for good there is a hole, and brokers refuse what follows: then
the lane is `broken`, learns the fate of what is in doubt, and goes on from 0 under a higher epoch (KIP-360).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from penstock.client.producer.batch import NOT_SENT, Batch
from penstock.kernels import OpenLane
from penstock.protocol.batch import NO_SEQUENCE

SEQUENCE_MASK = 0x7FFFFFFF
"""Sequence numbers go round after 2^31 - 1."""

REMEMBERED_BATCHES = 5
"""So many batches of a producer a broker knows again. With more of them out, to an old leader and to a new one, the
first to be repeated would be taken for a hole."""


class Lane(OpenLane):
    """The batches of one partition. `open` takes records, `queue` is to be sent, `flying` waits for an answer."""

    __slots__ = (
        "_next_order", "_next_sequence", "broken", "expected", "failures", "flying", "known", "leader", "partition",
        "producer", "queue", "resting", "topic",
    )  # fmt: skip

    open: Batch | None

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
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
        if batch.sequence != NO_SEQUENCE and batch.order != NOT_SENT:
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
