"""What committed batches must not say of transactions, each planted in a book of its own."""

from __future__ import annotations

import pytest

from penstock.coordinators.decision import ProducerEpoch, StateRecord
from penstock.coordinators.groups.records import offset_record
from penstock.coordinators.groups.table import CommittedOffset
from penstock.coordinators.transactions.records import state_record, tombstone
from penstock.coordinators.transactions.transaction import State, Status
from penstock.kernels import Record, stamp
from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Millis, PartitionKey, TopicPartition, Uuid
from penstock.protocol.batch import build_batch
from penstock.protocol.control import Marker, marker_batch
from penstock.server.coordinating.records import encode_batch
from penstock.testing.sim.transactions.books import Books
from penstock.testing.sim.transactions.ledger import Ledger
from penstock.testing.sim.transactions.oracles import fenced_and_committed
from penstock.testing.sim.truth import PartitionTruth, Truth

PID = 7


class Told:
    """Books that are told batches; `words` is what they object to."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.now_s = 1.0
        self.truth = Truth()
        self.books = Books(lambda: self.now_s, self.words.append)
        self._ends: dict[PartitionTruth, int] = {}

    def _partition(self, topic: str) -> PartitionTruth:
        topic_id = Uuid(topic.encode().ljust(16, b"\0")[:16])
        return self.truth.of(PartitionKey(topic_id, 0), TopicPartition(topic, 0))

    def _learn(self, topic: str, batch: bytearray, count: int) -> None:
        partition = self._partition(topic)
        base = self._ends.get(partition, 0)
        stamp(batch, 0, base, 0)
        self.books.learn(partition, bytes(batch))
        self._ends[partition] = base + count

    def write(self, topic: str, *values: bytes, epoch: int = 3, producer_id: int = PID) -> None:
        records = [Record(place, 0, None, value, ()) for place, value in enumerate(values)]
        batch = build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        self._learn(topic, bytearray(batch), len(values))

    def mark(self, topic: str, *, commits: bool = True, epoch: int = 4, coordinator_epoch: int = 1) -> None:
        batch = marker_batch(
            Marker(commits, coordinator_epoch), base_offset=0, leader_epoch=0, timestamp=0, producer_id=PID,
            producer_epoch=epoch,
        )  # fmt: skip
        self._learn(topic, bytearray(batch), 1)

    def state(self, status: Status, *places: tuple[str, int], epoch: int = 3, name: str = "id", pid: int = PID) -> None:
        state = State(pid, epoch, 1_000, status, frozenset(places), Millis(0), Millis(0), pid, -1, 2)
        self._learn(TRANSACTIONS_TOPIC, encode_batch([state_record(name, state, 1)], Millis(0), 0), 1)

    def later(self) -> list[str]:
        self.now_s += 1.0
        self.books.after_instant()
        return [words.partition(":")[0] for words in self.words]


@pytest.fixture
def told() -> Told:
    made = Told()
    made.state(Status.EMPTY)
    made.state(Status.ONGOING, ("t", 0), ("u", 0))
    made.later()
    return made


def test_a_whole_transaction_has_nothing_wrong(told: Told) -> None:
    told.write("t", b"a", b"b")
    told.write("t", b"c")
    told.state(Status.PREPARE_ABORT, ("t", 0), ("u", 0), epoch=4)
    assert told.later() == []
    told.mark("t", commits=False)
    told.state(Status.COMPLETE_ABORT, epoch=4)
    assert told.later() == []
    book = told.books.newest("t")[0]
    assert [each.committed for each in book.lines.values()] == [False, False, False]
    assert book.truth.void == {0, 1, 2}
    assert not told.books.open_books


def test_a_batch_of_a_transaction_that_its_coordinator_does_not_know_of(told: Told) -> None:
    told.write("v", b"a")
    assert told.later() == ["T3"]


def test_a_batch_after_the_end_of_its_transaction(told: Told) -> None:
    told.write("t", b"a")
    told.state(Status.PREPARE_COMMIT, ("t", 0), ("u", 0))
    told.mark("t", epoch=3)
    told.state(Status.COMPLETE_COMMIT)
    assert told.later() == []
    told.write("t", b"late")
    assert told.later() == ["T3"]


def test_a_marker_that_nobody_decided_or_of_the_other_kind(told: Told) -> None:
    told.write("t", b"a")
    told.mark("t")
    assert told.later() == ["T1"]
    told.state(Status.PREPARE_COMMIT, ("t", 0), ("u", 0), epoch=4)
    told.mark("t", commits=False)
    assert told.later() == ["T1", "T1"]


def test_what_is_written_in_one_instant_may_be_seen_in_any_order(told: Told) -> None:
    told.write("t", b"a")
    told.mark("t")
    told.state(Status.PREPARE_COMMIT, ("t", 0), ("u", 0), epoch=4)
    assert told.later() == []


def test_states_that_do_not_follow_each_other(told: Told) -> None:
    told.state(Status.COMPLETE_COMMIT)
    assert told.later() == ["T2"]


def test_an_id_that_is_forgotten_while_it_has_something_open(told: Told) -> None:
    told._learn(TRANSACTIONS_TOPIC, encode_batch([tombstone("id")], Millis(0), 0), 1)
    assert told.later() == ["T2"]


def test_a_producer_id_of_two_transactional_ids(told: Told) -> None:
    told.state(Status.EMPTY, name="other")
    assert told.later() == ["T12"]


def test_epochs_that_fall(told: Told) -> None:
    told.write("t", b"a")
    told.state(Status.PREPARE_COMMIT, ("t", 0), ("u", 0), epoch=4)
    told.mark("t", epoch=4, coordinator_epoch=5)
    told.mark("t", epoch=4, coordinator_epoch=4)
    assert told.later() == ["T12"], "that of the coordinator"
    told.mark("t", epoch=3, coordinator_epoch=5)
    assert "T12" in told.later()[1:], "that of the producer"


def test_a_transaction_that_is_complete_and_lacks_a_marker(told: Told) -> None:
    """KAFKA-20734: one of its partitions was passed over."""
    told.write("t", b"a")
    told.write("u", b"b")
    told.later()
    told.state(Status.PREPARE_COMMIT, ("t", 0), ("u", 0), epoch=4)
    told.mark("t")
    assert told.later() == []
    told.state(Status.COMPLETE_COMMIT, epoch=4)
    assert told.later() == ["T4"]
    assert "in u-0" in told.words[0]


def test_the_next_transaction_may_be_open_where_the_last_one_is_complete(told: Told) -> None:
    told.write("t", b"a")
    told.state(Status.PREPARE_COMMIT, ("t", 0), ("u", 0), epoch=4)
    told.mark("t")
    told.state(Status.COMPLETE_COMMIT, epoch=4)
    told.state(Status.ONGOING, ("t", 0), epoch=4)
    told.write("t", b"b", epoch=4)
    assert told.later() == []


@pytest.mark.parametrize(("wrote_s", "words"), [(5.0, ["T9"]), (1.5, [])])
def test_what_a_fenced_producer_wrote_is_not_committed(told: Told, wrote_s: float, words: list[str]) -> None:
    ledger = Ledger(lambda: b"")
    ledger.initialised("id", PID, 4, 3.0)
    told.now_s = wrote_s
    told.write("t", b"a")
    told.state(Status.PREPARE_COMMIT, ("t", 0), ("u", 0), epoch=4)
    told.mark("t")
    assert [each.partition(":")[0] for each in fenced_and_committed(told.books, ledger)] == words


def test_the_last_epoch_is_for_markers_alone() -> None:
    told = Told()
    told.state(Status.EMPTY, epoch=32_767)
    assert told.later() == ["T12"]


def committed(at: int) -> StateRecord:
    return offset_record("g", "t", 0, CommittedOffset(at, -1, "", 0))


PLACE = ("g", "t", 0)


def with_pending_offset() -> Told:
    """Offset 9 is in force, and a transaction that says 10 is open since the moment 2."""
    told = Told()
    told.state(Status.EMPTY)
    told.state(Status.ONGOING, (OFFSETS_TOPIC, 0))
    told._learn(OFFSETS_TOPIC, encode_batch([committed(9)], Millis(0), 0), 1)
    told.later()
    told._learn(OFFSETS_TOPIC, encode_batch([committed(10)], Millis(0), 0, ProducerEpoch(PID, 3)), 1)
    return told


def test_a_stable_offset_is_not_shown_while_a_transaction_may_change_it() -> None:
    told = with_pending_offset()
    assert "a transaction is open that says 10" in str(told.books.misread(PLACE, 9, 2.5, 2.6))
    assert told.books.misread(PLACE, 9, 1.9, 2.6) is None, "it may have been told before"


def test_a_stable_offset_is_the_one_in_force_at_some_moment_between_question_and_answer() -> None:
    told = with_pending_offset()
    told.state(Status.PREPARE_COMMIT, (OFFSETS_TOPIC, 0), epoch=4)
    told.now_s = 3.0
    told.mark(OFFSETS_TOPIC)
    assert [told.books.misread(PLACE, shown, 2.5, 3.5) for shown in (9, 10)] == [None, None]
    assert told.books.misread(PLACE, 10, 3.1, 3.5) is None
    assert "in force is 10" in str(told.books.misread(PLACE, 9, 3.1, 3.5))
    assert "in force is 10" in str(told.books.misread(PLACE, None, 3.1, 3.5))


def test_offsets_in_force_go_by_the_order_of_records() -> None:
    told = Told()
    told.state(Status.EMPTY)
    told.state(Status.ONGOING, (OFFSETS_TOPIC, 0))
    in_transaction = encode_batch([committed(10)], Millis(0), 0, ProducerEpoch(PID, 3))
    told._learn(OFFSETS_TOPIC, in_transaction, 1)
    assert told.books.offsets() == {}
    told._learn(OFFSETS_TOPIC, encode_batch([committed(12)], Millis(0), 0), 1)
    told.state(Status.PREPARE_COMMIT, (OFFSETS_TOPIC, 0), epoch=4)
    told.mark(OFFSETS_TOPIC)
    assert told.books.offsets() == {("g", "t", 0): 12}
    assert told.later() == []
