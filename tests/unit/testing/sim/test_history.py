"""The history finds what it is there to find: planted losses, duplicates, reorderings and changes."""

from __future__ import annotations

from penstock.testing.sim.history import History, Place

LOG = ("t", 0)
WHOLE = {LOG: 0}


def sent(count: int = 4) -> History:
    """A producer whose records lie at offsets 0, 1, 2 …, all acknowledged."""
    history = History()
    sender = history.sender("p", promised=True)
    for offset in range(count):
        sender.next_value()
        sender.acknowledged[sender.sent] = Place("t", 0, offset)
    return history


def log(*numbers: int) -> dict[tuple[str, int], list[tuple[int, bytes]]]:
    return {LOG: [(offset, b"p:%d" % number) for offset, number in enumerate(numbers)]}


def test_a_log_that_keeps_its_promises_is_fine() -> None:
    assert sent().check(log(1, 2, 3, 4), WHOLE) == []


def test_a_lost_record_is_found() -> None:
    assert any("lost" in words for words in sent().check(log(1, 2, 3), WHOLE))


def test_what_retention_took_is_not_lost_and_nothing_behind_it_is_excused() -> None:
    left = {LOG: [(2, b"p:3")]}
    assert sent(3).check(left, {LOG: 2}) == []
    assert any("lost" in words for words in sent(4).check(left, {LOG: 2}))


def test_a_record_at_another_offset_is_found() -> None:
    assert any("was acknowledged at t-0@3" in words for words in sent().check(log(1, 2, 4, 3), WHOLE))


def test_a_record_that_is_there_twice_is_found() -> None:
    assert any("twice" in words for words in sent().check(log(1, 2, 3, 4, 4), WHOLE))


def test_records_out_of_order_are_found() -> None:
    assert any("after p:2" in words for words in sent().check(log(2, 1, 3, 4), WHOLE))


def test_a_record_that_nobody_sent_is_found() -> None:
    assert any("nobody sent" in words for words in sent().check(log(1, 2, 3, 4, 9), WHOLE))


def test_a_record_that_was_shown_and_changed_is_found() -> None:
    history = sent()
    history.show("c", Place("t", 0, 1), b"p:7")
    assert any("a reader was shown" in words for words in history.check(log(1, 2, 3, 4), WHOLE))


def test_a_reader_that_goes_back_is_found_unless_it_was_given_the_partition_anew() -> None:
    history = sent()
    history.show("c", Place("t", 0, 1), b"p:2")
    history.owns_anew("c", 1, "t", 0)
    history.show("c", Place("t", 0, 0), b"p:1")
    assert history.check(log(1, 2, 3, 4), WHOLE) == []
    history.show("c", Place("t", 0, 0), b"p:1")
    assert any("went back" in words for words in history.check(log(1, 2, 3, 4), WHOLE))


def test_two_readers_of_one_partition_in_one_generation_are_found() -> None:
    history = sent()
    history.owns_anew("c", 1, "t", 0)
    history.owns_anew("d", 2, "t", 0)
    assert history.check(log(1, 2, 3, 4), WHOLE) == []
    history.owns_anew("c", 2, "t", 0)
    assert any("is read by d and c in generation 2" in words for words in history.check(log(1, 2, 3, 4), WHOLE))
