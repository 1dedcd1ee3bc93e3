"""What of a fetch is shown, and where it leads."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.consumer.batches import Batch, open_fetched
from penstock.kernels import BadCrc
from penstock.protocol.batch import CODECS
from tests.unit.client.consumer.made import batch, emptied_marker, marker, opened, spoilt


@dataclass
class Given:
    producer_id: int
    first_offset: int


def shown(batches: list[Batch], at: int = 0) -> list[int]:
    return [r.offset for found in batches if found.header is not None for r in found.decode("t", 0, at)]


def test_records_before_the_position_are_left_out() -> None:
    (found,) = opened(batch(0, 10), at=7)
    assert [r.offset for r in found.decode("t", 0, 7)] == [7, 8, 9]
    assert found.end == 10


def test_batches_before_the_position_are_left_out() -> None:
    assert [found.end for found in opened(batch(0, 5), batch(5, 5), at=5)] == [10]


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    assert [found.end for found in opened(batch(0, 5), batch(5, 5)[:-1])] == [5]


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_every_codec_is_read(codec: int) -> None:
    (found,) = opened(batch(3, 4, codec=codec, epoch=2))
    records = found.decode("t", 1, 0)
    assert [(r.topic, r.partition, r.offset, r.key, r.value, r.timestamp, r.leader_epoch) for r in records] == [
        ("t", 1, offset, b"k%d" % offset, b"v", 1_000 + offset, 2) for offset in range(3, 7)
    ]


def test_control_records_are_counted_and_not_shown() -> None:
    found = opened(batch(0, 2, producer=7), marker(2, 7, commits=True), batch(3))
    assert (shown(found), [one.end for one in found]) == ([0, 1, 3], [3, 4])


def test_nothing_but_control_records_still_leads_on() -> None:
    (found,) = opened(marker(0, 7, commits=True), marker(1, 8, commits=True))
    assert (found.header, found.end) == (None, 2)


def test_aborted_records_are_shown_to_those_who_want_the_uncommitted() -> None:
    assert shown(opened(batch(0, 2, producer=7), marker(2, 7, commits=False))) == [0, 1]


def test_aborted_records_are_hidden_from_their_first_offset_to_their_marker() -> None:
    log = b"".join(
        [
            batch(0, 2, producer=7),  # aborted
            batch(2, 1, producer=8),  # committed
            batch(3, 1),
            marker(4, 7, commits=False),
            batch(5, 1, producer=7),  # the next transaction of the same producer
            marker(6, 8, commits=True),
            marker(7, 7, commits=True),
        ]
    )
    found = open_fetched(log, 0, aborted=[Given(7, 0)])
    assert shown(found) == [2, 3, 5]
    assert found[-1].end == 8


def test_two_aborts_of_one_producer_do_not_run_together() -> None:
    log = b"".join(
        [
            batch(0, producer=7),
            marker(1, 7, commits=False),
            batch(2, producer=7),
            marker(3, 7, commits=True),
            batch(4, producer=7),
            marker(5, 7, commits=False),
        ]
    )
    assert shown(open_fetched(log, 0, aborted=[Given(7, 4), Given(7, 0)])) == [2]


def test_a_transaction_that_was_aborted_before_the_position_is_hidden_too() -> None:
    log = batch(5, 2, producer=7) + marker(7, 7, commits=False) + batch(8)
    assert shown(open_fetched(log, 6, aborted=[Given(7, 0)]), 6) == [8]


def test_an_emptied_control_batch_is_no_marker() -> None:
    """What compaction leaves of one must not end a transaction of its producer that was aborted."""
    log = b"".join(
        [batch(0, producer=7), emptied_marker(1, 7), batch(2, producer=7), marker(3, 7, commits=False), batch(4)]
    )
    found = open_fetched(log, 0, aborted=[Given(7, 0)])
    assert (shown(found), found[-1].end) == ([4], 5)
    (alone,) = open_fetched(emptied_marker(0, 7), 0, aborted=[])
    assert (alone.header, alone.end) == (None, 1)


class Log:
    """Transactions of some producers, and others' records between them, in order of their offsets."""

    def __init__(self, dice: Random) -> None:
        self.batches: list[tuple[int, int, bytes]] = []  # first offset, end, bytes
        self.aborted: list[tuple[int, int, int]] = []  # producer, first offset, offset of the marker
        self.hidden: set[int] = set()
        self.data: list[int] = []
        offset = 0
        open_at: dict[int, list[int]] = {}
        for _ in range(dice.randrange(1, 40)):
            producer = dice.choice([-1, 7, 8, 9])
            if producer >= 0 and producer in open_at and dice.random() < 0.35:
                commits = dice.random() < 0.5
                written = open_at.pop(producer)
                if not commits:
                    self.aborted.append((producer, written[0], offset))
                    self.hidden.update(written)
                self._add(offset, 1, marker(offset, producer, commits=commits))
            elif producer >= 0 and producer not in open_at and dice.random() < 0.1:
                self._add(
                    offset, 1, dice.choice([emptied_marker(offset, producer), marker(offset, producer, commits=True)])
                )
            else:
                count = dice.randrange(1, 4)
                self._add(offset, count, batch(offset, count, producer=producer))
                self.data += range(offset, offset + count)
                if producer >= 0:
                    open_at.setdefault(producer, []).extend(range(offset, offset + count))
            offset = self.batches[-1][1]
        self.stable = min((written[0] for written in open_at.values()), default=offset)

    def _add(self, offset: int, count: int, whole: bytes) -> None:
        self.batches.append((offset, offset + count, whole))

    def fetch(self, at: int, batches: int) -> tuple[bytes, list[Given], int]:
        """What a leader answers a reader of committed records: bytes, the aborted list, and the end of both."""
        found = [one for one in self.batches if one[1] > at and one[0] < self.stable][:batches]
        end = found[-1][1] if found else at
        aborted = [Given(producer, first) for producer, first, last in self.aborted if last >= at and first < end]
        return b"".join(one[2] for one in found), aborted, end


@given(st.integers(0, 1 << 32))
def test_readers_of_committed_records_see_those_and_no_others(seed: int) -> None:
    """From any offset, however the log is cut into replies, and with the aborted list in any order."""
    dice = Random(seed)
    log = Log(dice)
    at = begin = dice.randrange(log.stable + 1)
    seen: list[int] = []
    while at < log.stable:
        whole, aborted, end = log.fetch(at, dice.randrange(1, 6))
        dice.shuffle(aborted)
        found = open_fetched(whole, at, aborted=aborted)
        seen += [offset for offset in shown(found, at) if offset < log.stable]
        assert found[-1].end == end, "what is not shown moves the position too"
        at = end
    assert seen == [offset for offset in log.data if begin <= offset < log.stable and offset not in log.hidden]


def test_a_wrong_checksum_is_found_when_the_batch_is_reached() -> None:
    good, bad = opened(batch(0, 2), spoilt(batch(2, 2)))
    assert [r.offset for r in good.decode("t", 0, 0)] == [0, 1]
    for _ in range(2):
        with pytest.raises(BadCrc):
            bad.decode("t", 0, 0)


def test_checksums_are_not_looked_at_unless_asked_for() -> None:
    (found,) = open_fetched(spoilt(batch(0, value=b"abc")), 0, check_crcs=False)
    assert found.broken is None


def test_bytes_of_another_format_end_the_line_and_say_so() -> None:
    whole = bytearray(batch(2))
    whole[16] = 1
    *good, bad = opened(batch(0, 2), bytes(whole))
    assert [one.end for one in good] == [2]
    assert "format 1" in str(bad.broken)


def test_large_compressed_batches_are_worth_a_thread() -> None:
    noise = Random(1).randbytes(70_000)
    assert [opened(batch(0, codec=codec, value=noise))[0].large for codec in (0, 1, 2, 3, 4)] == [False] + [True] * 4
    assert not opened(batch(0, codec=1, value=bytes(70_000)))[0].large  # it packs well
