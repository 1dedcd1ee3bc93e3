"""The newest batches of the metadata log are read from memory, and nothing unwritten is ever let go of."""

from __future__ import annotations

from penstock.model.ids import Offset
from penstock.server.quorum.tail import BATCHES_MAX, BYTES_MAX, QuorumTail


def tail(count: int, size: int = 10) -> QuorumTail:
    """`count` batches of two offsets each, from offset 100 on."""
    made = QuorumTail(Offset(100))
    for number in range(count):
        made.add(Offset(102 + 2 * number), bytes([number % 256]) * size)
    return made


def test_a_read_begins_with_the_batch_that_holds_the_offset_and_ends_with_a_whole_one() -> None:
    assert tail(3).read(Offset(102), 25) == bytes([1]) * 10 + bytes([2]) * 10
    assert tail(3).read(Offset(103), 19) == bytes([1]) * 10
    assert tail(3).read(Offset(100), 1) == bytes(10), "one comes, however small the limit"
    assert tail(3).read(Offset(106), 100) == b""


def test_what_is_older_is_the_disks() -> None:
    assert tail(3).read(Offset(99), 100) is None


def test_too_much_is_forgotten_but_nothing_that_is_not_written() -> None:
    many = tail(BATCHES_MAX + 1)
    many.forget(Offset(110))
    assert many.start == 110
    many = tail(BATCHES_MAX + 1)
    many.forget(Offset(1 << 40))
    assert many.start == 100 + 2 * (BATCHES_MAX + 1 - BATCHES_MAX // 2)
    large = tail(4, size=BYTES_MAX // 3)
    large.forget(Offset(1 << 40))
    assert large.start == 106


def test_a_cut_leaves_the_batches_before_it() -> None:
    cut = tail(3)
    cut.cut(Offset(104))
    assert cut.read(Offset(100), 100) == bytes(10) + bytes([1]) * 10
    cut.cut(Offset(50))
    assert (cut.start, cut.read(Offset(50), 100)) == (50, b"")
