"""The history finds what it is there to find: planted losses, duplicates, reorderings and changes."""

from __future__ import annotations

from penstock.kernels import Record
from penstock.model.config import TopicSettings
from penstock.model.ids import PartitionKey, TopicPartition, Uuid
from penstock.testing.sim.history import History, Place
from penstock.testing.sim.truth import Truth

OLD, NEW = Uuid(bytes(15) + b"\x01"), Uuid(bytes(15) + b"\x02")


def log(*numbers: int) -> Truth:
    """A truth in which the records of a producer lie at offsets 0, 1, 2 …"""
    return written(Truth(), OLD, *numbers)


def written(truth: Truth, topic_id: Uuid, *numbers: int) -> Truth:
    partition = truth.of(PartitionKey(topic_id, 0), TopicPartition("t", 0))
    rows = [Record(offset, 0, b"k", b"p:%d" % number) for offset, number in enumerate(numbers)]
    partition.learn(rows, len(rows), 0.0)
    return truth


def sent(truth: Truth, count: int = 4) -> History:
    """A producer that was told that its records lie at offsets 0, 1, 2 …"""
    history = History(truth)
    sender = history.sender("p", promised=True, once=True)
    for offset in range(count):
        sender.next_value()
        sender.acknowledged[sender.sent] = Place("t", 0, offset)
    return history


def test_a_log_that_keeps_its_promises_is_fine() -> None:
    assert sent(log(1, 2, 3, 4)).check() == []


def test_a_lost_record_is_found() -> None:
    assert any("lost" in words for words in sent(log(1, 2, 3)).check())


def test_a_record_that_retention_took_before_anybody_looked_is_not_lost() -> None:
    truth = log(1, 2)
    brief = TopicSettings.of({"retention.ms": "1"}, {})
    assert truth.partitions[PartitionKey(OLD, 0)].objection(4, brief, 0, 10_000) is None
    assert sent(truth).check() == []
    assert any("lost" in words for words in sent(truth, 5).check())


def test_a_record_that_went_with_its_topic_before_anybody_looked_is_not_lost() -> None:
    truth = log(1, 2)
    truth.partitions[PartitionKey(OLD, 0)].went(4)
    assert sent(truth).check() == []
    assert any("lost" in words for words in sent(truth, 5).check())


def test_where_losses_were_allowed_a_lost_record_is_none() -> None:
    truth = log(1, 2, 3)
    truth.forgive("t")
    assert sent(truth).check() == []


def test_a_record_at_another_offset_is_found() -> None:
    assert any("was acknowledged at t-0@3" in words for words in sent(log(1, 2, 4, 3)).check())


def test_a_record_that_is_there_twice_is_found() -> None:
    assert any("twice" in words for words in sent(log(1, 2, 3, 4, 4)).check())


def test_what_is_tried_again_when_retention_took_it_may_be_there_twice() -> None:
    """A replica that begins anew where the log does knows nobody whose records are gone."""
    truth = log(1, 2, 3, 4)
    partition = truth.partitions[PartitionKey(OLD, 0)]
    assert partition.objection(4, TopicSettings.of({"retention.ms": "1"}, {}), 0, 10_000) is None
    again = [Record(4 + at, 0, b"k", b"p:%d" % number) for at, number in enumerate((3, 4))]
    partition.learn(again, 6, 0.0)
    assert sent(truth).check() == []
    partition.learn([Record(6, 0, b"k", b"p:4")], 7, 0.0)
    assert any("p:4' twice" in words for words in sent(truth).check()), "its last record is there"


def test_records_out_of_order_are_found() -> None:
    assert any("after p:2" in words for words in sent(log(2, 1, 3, 4)).check())


def test_a_record_that_nobody_sent_is_found() -> None:
    assert any("nobody sent" in words for words in sent(log(1, 2, 3, 4, 9)).check())


def test_a_record_that_was_shown_and_is_another_is_found() -> None:
    history = sent(log(1, 2, 3, 4))
    history.show("c", Place("t", 0, 1), b"p:7")
    assert any("a reader was shown" in words for words in history.check())


def test_a_record_of_a_former_topic_is_found_when_its_reader_knew_the_new_one() -> None:
    history = sent(written(log(1, 2, 3, 4), NEW))
    history.show_of("c", OLD, Place("t", 0, 1), b"p:2")
    assert history.check() == []
    history.show_of("c", NEW, Place("t", 0, 1), b"p:2")
    assert history.check() == ["c was shown b'p:2' at t-0@1, of a former topic of that name"]


def test_a_reader_that_goes_back_is_found_unless_it_was_given_the_partition_anew() -> None:
    history = sent(log(1, 2, 3, 4))
    history.show("c", Place("t", 0, 1), b"p:2")
    history.owns_anew("c", 1, "t", 0)
    history.show("c", Place("t", 0, 0), b"p:1")
    assert history.check() == []
    history.show("c", Place("t", 0, 0), b"p:1")
    assert any("went back" in words for words in history.check())


def test_two_readers_of_one_partition_in_one_generation_are_found() -> None:
    history = sent(log(1, 2, 3, 4))
    history.owns_anew("c", 1, "t", 0)
    history.owns_anew("d", 2, "t", 0)
    assert history.check() == []
    history.owns_anew("c", 2, "t", 0)
    assert any("is read by d and c in generation 2" in words for words in history.check())
