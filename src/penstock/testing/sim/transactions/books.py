"""What committed batches say of transactions, as each is first seen: records and their outcomes, markers, and states.

A record of a transaction is decided by the next marker of its producer in the same partition. Where a log's beginning
went before anybody could look, a partition has a gap, and what was open then is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.coordinators.transactions.records import state_of
from penstock.coordinators.transactions.transaction import State, Status
from penstock.kernels import read_header
from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.protocol.batch import read_records
from penstock.protocol.disk.classic_group_records import OffsetCommitKey, OffsetCommitValue
from penstock.protocol.disk.transaction_records import TransactionLogKey, TransactionLogValue
from penstock.server.coordinating.groups import GROUP_READER
from penstock.server.coordinating.transactions import TRANSACTION_READER
from penstock.storage.producers import CONTROL, TRANSACTIONAL, read_marker
from penstock.testing.sim.topics import AGAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.kernels import BatchHeader
    from penstock.model.ids import TopicPartition
    from penstock.storage.producers import Marker
    from penstock.testing.sim.truth import PartitionTruth

EPOCH_MAX = 32_767
FOLLOWS: dict[Status | None, frozenset[Status | None]] = {
    None: frozenset({Status.EMPTY}),
    Status.EMPTY: frozenset({Status.EMPTY, Status.ONGOING, Status.PREPARE_ABORT, None}),
    Status.ONGOING: frozenset({Status.ONGOING, Status.PREPARE_COMMIT, Status.PREPARE_ABORT}),
    Status.PREPARE_COMMIT: frozenset({Status.COMPLETE_COMMIT}),
    Status.PREPARE_ABORT: frozenset({Status.COMPLETE_ABORT}),
    Status.COMPLETE_COMMIT: frozenset({Status.EMPTY, Status.ONGOING, Status.PREPARE_ABORT, None}),
    Status.COMPLETE_ABORT: frozenset({Status.EMPTY, Status.ONGOING, Status.PREPARE_ABORT, None}),
}
"""Which state may come after which; None is an id that is not known, or is forgotten."""

PREPARED = {Status.PREPARE_COMMIT: True, Status.PREPARE_ABORT: False}


class Line:
    """A record in a log; `committed` is None while its transaction is open."""

    __slots__ = ("committed", "decided_s", "key", "seen_s", "transactional", "value")

    def __init__(self, key: bytes | None, value: bytes | None, seen_s: float, *, open_: bool) -> None:
        self.key, self.value, self.seen_s, self.transactional = key, value, seen_s, open_
        self.committed: bool | None = None if open_ else True
        self.decided_s = seen_s

    def __str__(self) -> str:
        return f"{self.value!r}"


class Opened:
    """A transaction that is open in a partition."""

    __slots__ = ("began_s", "epoch", "first", "lines", "offsets", "seen_s")

    def __init__(self, epoch: int, first: int, seen_s: float) -> None:
        self.epoch, self.first, self.seen_s, self.began_s = epoch, first, seen_s, seen_s
        self.offsets: list[int] = []
        self.lines: list[Line] = []


class Ended(NamedTuple):
    """A transaction of a partition that has its marker."""

    producer_id: int
    epoch: int
    first: int
    last: int
    """Where the marker is."""

    committed: bool
    last_seen_s: float


class Stated(NamedTuple):
    """A committed record of `__transaction_state`."""

    at_s: float
    transactional_id: str
    state: State


class Committed(NamedTuple):
    """A record of a group's offset, and where it lies; `offset` is None where it takes the one before away."""

    at: int
    offset: int | None
    line: Line


Place = tuple[str, str, int]
"""A group, a topic and a partition."""


class Book:
    """One partition of one incarnation of a topic."""

    def __init__(self, truth: PartitionTruth) -> None:
        self.truth = truth
        self.name: TopicPartition = truth.name
        self.end = 0
        self.gap = False
        self.lines: dict[int, Line] = {}
        self.opened: dict[int, Opened] = {}
        self.ended: list[Ended] = []
        self.producers: dict[int, tuple[int, int]] = {}
        """The last epoch and the last coordinator epoch of each."""


class Books:
    """All partitions, and all transactional ids. `complain` is called with what cannot be."""

    def __init__(
        self, clock: Callable[[], float], complain: Callable[[str], None], *, producers_expire: bool = False
    ) -> None:
        """Where `producers_expire` a leader forgets which epochs it has seen of a producer that has nothing open."""
        self._clock, self._complain, self._producers_expire = clock, complain, producers_expire
        self.books: dict[PartitionTruth, Book] = {}
        self.open_books: dict[Book, None] = {}
        self.states: dict[str, list[Stated]] = {}
        self.by_producer: dict[int, list[Stated]] = {}
        self.commits: dict[Place, list[Committed]] = {}
        """All that was ever said of each offset, in the order in which it was committed."""

        self.on_state: Callable[[str, State | None, State], None] = lambda _name, _last, _state: None
        """Is told of every new state of a transactional id, and of the one before."""

        self._due: list[tuple[float, Callable[[float], str | None]]] = []

    # -- reading batches

    def learn(self, truth: PartitionTruth, batch: bytes) -> None:
        """A batch is committed. What other partitions must say too is looked at when the instant is over."""
        book = self.books.get(truth)
        if book is None:
            book = self.books[truth] = Book(truth)
            book.end = truth.start
        header, now_s = read_header(batch), self._clock()
        if header.base_offset < book.end:
            return
        if header.base_offset > book.end:
            book.gap = True
            book.opened.clear()
        book.end = header.last_offset + 1
        if header.attributes & CONTROL:
            marker = read_marker(header, batch)
            if marker is not None:
                self._marked(book, header, marker, now_s)
        else:
            self._written(book, header, batch, now_s)
        if book.opened:
            self.open_books[book] = None
        else:
            self.open_books.pop(book, None)

    def _written(self, book: Book, header: BatchHeader, batch: bytes, now_s: float) -> None:
        of_transaction = bool(header.attributes & TRANSACTIONAL)
        opened = None
        if of_transaction:
            producer_id, epoch = header.producer_id, header.producer_epoch
            self._check_epoch(book, producer_id, epoch)
            opened = book.opened.get(producer_id)
            if opened is None:
                opened = book.opened[producer_id] = Opened(epoch, header.base_offset, now_s)
                self._due.append((now_s, lambda at_s: self._unknown(book.name, producer_id, epoch, at_s)))
            elif opened.epoch != epoch:
                self._complain(
                    f"T3: {book.name} has epochs {opened.epoch} and {epoch} of producer {producer_id} in a transaction"
                )
            opened.seen_s = now_s
        for record in read_records(batch):
            line = book.lines[record.offset] = Line(record.key, record.value, now_s, open_=opened is not None)
            if opened is not None:
                opened.offsets.append(record.offset)
                opened.lines.append(line)
            if book.name.topic == TRANSACTIONS_TOPIC:
                self._stated(record.key, record.value, now_s)
            elif book.name.topic == OFFSETS_TOPIC:
                self._note_offset(record.offset, line)

    def _marked(self, book: Book, header: BatchHeader, marker: Marker, now_s: float) -> None:
        producer_id, epoch = header.producer_id, header.producer_epoch
        self._check_epoch(book, producer_id, epoch)
        last = book.producers[producer_id][1]
        if marker.coordinator_epoch < last and not self._producers_expire:
            self._complain(
                f"T12: {book.name}@{header.base_offset} is a marker of coordinator epoch {marker.coordinator_epoch} "
                f"for producer {producer_id}, after one of {last}"
            )
        book.producers[producer_id] = epoch, marker.coordinator_epoch
        commits = not marker.aborts
        self._due.append((now_s, lambda at_s: self._undecided(book.name, producer_id, epoch, commits, at_s)))
        opened = book.opened.pop(producer_id, None)
        if opened is None:
            return
        book.ended.append(Ended(producer_id, opened.epoch, opened.first, header.base_offset, commits, opened.seen_s))
        for line in opened.lines:
            line.committed, line.decided_s = commits, now_s
        if not commits:
            book.truth.void.update(opened.offsets)

    def _check_epoch(self, book: Book, producer_id: int, epoch: int) -> None:
        known, coordinator_epoch = book.producers.get(producer_id, (-1, -1))
        if epoch < known and (not self._producers_expire or producer_id in book.opened):
            self._complain(f"T12: {book.name} has epoch {epoch} of producer {producer_id} after {known}")
        book.producers[producer_id] = max(epoch, known), coordinator_epoch

    # -- the states of transactional ids

    def _stated(self, key: bytes | None, value: bytes | None, now_s: float) -> None:
        record = TRANSACTION_READER.read(key, value)
        if record is None or not isinstance(record.key, TransactionLogKey):
            return
        name = record.key.transactional_id
        before = self.states.setdefault(name, [])
        last = before[-1].state if before else None
        if record.value is None:
            if None not in FOLLOWS[None if last is None else last.status]:
                self._complain(f"T2: {name} is forgotten in {last and last.status.name}")
            before.clear()
            return
        assert isinstance(record.value, TransactionLogValue), "keys and values come in pairs"
        state = state_of(record.value)
        self._check_state(name, last, state)
        stated = Stated(now_s, name, state)
        before.append(stated)
        self.by_producer.setdefault(state.producer_id, []).append(stated)
        if last is not None and last.status in PREPARED:
            self._due.append((now_s, lambda at_s: self._unmarked(name, last, at_s)))
        self.on_state(name, last, state)

    def _unmarked(self, name: str, prepared: State, at_s: float) -> str | None:
        """T4: when a transaction is complete its marker is committed in every partition that it names."""
        for place in sorted(prepared.partitions):
            book = None if place[0] == AGAIN else self.newest(place[0]).get(place[1])
            opened = None if book is None else book.opened.get(prepared.producer_id)
            if opened is not None and opened.began_s < at_s:
                return (
                    f"T4: {name} is complete, and in {place[0]}-{place[1]} its transaction (producer "
                    f"{prepared.producer_id}, epoch {opened.epoch}) is open since {opened.first}"
                )
        return None

    # -- the offsets of groups

    def _note_offset(self, at: int, line: Line) -> None:
        record = GROUP_READER.read(line.key, line.value)
        if record is not None and isinstance(record.key, OffsetCommitKey):
            offset = record.value.offset if isinstance(record.value, OffsetCommitValue) else None
            place = record.key.group, record.key.topic, record.key.partition
            self.commits.setdefault(place, []).append(Committed(at, offset, line))

    def misread(self, place: Place, shown: int | None, asked_s: float, told_s: float) -> str | None:
        """T10: what is wrong with an offset that somebody was shown who asked for stable ones, between two moments."""
        told = self.commits.get(place, [])
        group, topic, number = place
        for each in told:
            line = each.line
            open_throughout = line.committed is None or (line.transactional and line.decided_s > told_s)
            if line.seen_s < asked_s and open_throughout:
                return (
                    f"T10: {shown} is shown as what {group} has read of {topic}-{number}, and since "
                    f"{line.seen_s:.4f} s a transaction is open that says {each.offset}"
                )
        before = [each for each in told if each.line.committed and each.line.decided_s < asked_s]
        in_force = {max(before, key=lambda each: each.at).offset if before else None}
        in_force |= {each.offset for each in told if each.line.committed and asked_s <= each.line.decided_s <= told_s}
        if shown in in_force:
            return None
        others = ", ".join(sorted(map(str, in_force)))
        return f"T10: {shown} is shown as what {group} has read of {topic}-{number}, and in force is {others}"

    def _check_state(self, name: str, last: State | None, state: State) -> None:
        is_old = last is None and state.status is Status.COMPLETE_COMMIT  # of the past that a world began with
        if not is_old and state.status not in FOLLOWS[None if last is None else last.status]:
            was = "nothing" if last is None else last.status.name
            self._complain(f"T2: {name} goes from {was} to {state.status.name}")
        owners = self.by_producer.get(state.producer_id, [])
        if any(each.transactional_id != name for each in owners):
            self._complain(f"T12: producer {state.producer_id} belongs to {owners[0].transactional_id} and to {name}")
        if last is not None and last.producer_id == state.producer_id and state.epoch < last.epoch:
            self._complain(f"T12: {name} goes back from epoch {last.epoch} to {state.epoch}")
        if not 0 <= state.epoch <= EPOCH_MAX or (state.epoch == EPOCH_MAX and state.status not in PREPARED):
            self._complain(f"T12: {name} has epoch {state.epoch} in {state.status.name}")
        if last is not None and last.status in PREPARED and state.partitions:
            self._complain(f"T2: {name} is complete and names partitions")

    def at(self, producer_id: int, at_s: float) -> list[Stated]:
        """The state of a producer id before an instant, and those of that instant."""
        known = self.by_producer.get(producer_id, [])
        before = [each for each in known if each.at_s < at_s][-1:]
        return [*before, *(each for each in known if each.at_s == at_s)]

    def is_current(self, name: str, producer_id: int, epoch: int) -> bool:
        """Whether the last that is known of an id is this producer in this epoch, or will be when it is complete."""
        told = self.states.get(name)
        if not told:
            return False
        state = told[-1].state
        return state.next_producer_id == producer_id or (state.producer_id == producer_id and state.epoch <= epoch)

    # -- what is looked at when an instant is over

    def after_instant(self) -> None:
        now_s = self._clock()
        while self._due and self._due[0][0] < now_s:
            at_s, objection = self._due.pop(0)
            words = objection(at_s)
            if words is not None:
                self._complain(words)

    def _unknown(self, name: TopicPartition, producer_id: int, epoch: int, at_s: float) -> str | None:
        """T3: a transaction begins in a partition after its coordinator has written that it does."""
        states = self.at(producer_id, at_s)
        for _, _, state in states:
            named = (name.topic, name.partition) in state.partitions
            if named and state.status is Status.ONGOING and state.epoch == epoch:
                return None
            if named and state.status in PREPARED and state.epoch in (epoch, epoch + 1):
                return None
        told = ", ".join(f"{each.transactional_id} {_told(each.state)}" for each in states)
        known = f"its coordinator knows: {told or 'nothing'}"
        return f"T3: {name} has a batch of producer {producer_id}, epoch {epoch}; {known}"

    def _undecided(self, name: TopicPartition, producer_id: int, epoch: int, commits: bool, at_s: float) -> str | None:
        """T1: a marker is written after its outcome, and is of that kind."""
        for when_s, _, state in self.by_producer.get(producer_id, ()):
            if when_s <= at_s and state.epoch == epoch and PREPARED.get(state.status) is commits:
                return None
        kind = "commit" if commits else "abort"
        return f"T1: {name} has a marker ({kind}) of producer {producer_id}, epoch {epoch}, which nobody decided"

    # -- what is asked

    def newest(self, topic: str) -> dict[int, Book]:
        """The partitions of the last incarnation of a topic."""
        return {book.name.partition: book for book in self.books.values() if book.name.topic == topic}

    def offsets(self) -> dict[Place, int | None]:
        """By group, topic and partition, the offset in force by the order of records; None when it was taken."""
        found: dict[Place, int | None] = {}
        for place, told in self.commits.items():
            committed = [each for each in told if each.line.committed]
            if committed:
                found[place] = max(committed, key=lambda each: each.at).offset
        return found


def _told(state: State) -> str:
    places = ", ".join(f"{topic}-{index}" for topic, index in sorted(state.partitions))
    return f"{state.status.name} in epoch {state.epoch} with {places or 'nothing'}"
