"""Which file it is: decisions from facts, by example and for whatever history of a file one can think of."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.inputs.files.inflating import GZIP, PLAIN, CutOff
from penstock.agent.inputs.tail.identity import (
    ANCHOR_BYTES,
    PREFIX_BYTES,
    Alias,
    Anchor,
    CopyOf,
    Known,
    New,
    Place,
    Renamed,
    Replaced,
    Same,
    Sighting,
    Verdict,
    Wait,
    akin,
    anchor_at,
    judge,
    print_of,
)

SETTLE_MS = 5000.0


def text(seed: int, size: int) -> bytes:
    """Bytes that differ from those of another seed everywhere."""
    found = b""
    while len(found) < size:
        found += b"%08x\n" % zlib.crc32(b"%d %d" % (seed, len(found)))
    return found[:size]


BIG = text(1, 5000)
SMALL = text(1, 500)


def known(content: bytes, position: int | None = None, **changes: object) -> Known:
    """A file that was read up to a position."""
    at = len(content) if position is None else position
    read = content[:at]
    anchors: tuple[Anchor, ...] = (anchor_at(at, read),) if at else ()
    file = Known(
        "1", "/logs/app.log", "/logs/app.log", 1, 10, PLAIN, print_of(read[:PREFIX_BYTES]), at, anchors, Place.HERE,
        lambda begin, length: content[begin : begin + length],
    )  # fmt: skip
    return replace(file, **changes)  # type: ignore[arg-type]  # the tests say what they change


def seen(content: bytes, path: str = "/logs/app.log.1", inode: int = 20, **changes: object) -> Sighting:
    sighting = Sighting(
        path, 1, inode, PLAIN, len(content), content[:PREFIX_BYTES],
        lambda begin, length: content[begin : begin + length], 0.0, 0.0,
    )  # fmt: skip
    return replace(sighting, **changes)  # type: ignore[arg-type]  # the tests say what they change


def verdict(sighting: Sighting, *files: Known) -> Verdict:
    own = next((file for file in files if (file.device, file.inode) == (sighting.device, sighting.inode)), None)
    alike = [file for file in files if file.prefix.length and file.prefix.matches(sighting.head)]
    return judge(sighting, own, [] if own else alike, SETTLE_MS)


QUIET = {"quiet_ms": SETTLE_MS, "age_ms": SETTLE_MS}


class TestTheSameInode:
    def test_is_the_same_file_as_long_as_what_was_read_stands(self) -> None:
        assert verdict(seen(BIG + b"more", "/logs/app.log", 10), known(BIG)) == Same("1")

    def test_at_another_path_was_renamed_when_its_own_shows_it_no_longer(self) -> None:
        assert verdict(seen(BIG, inode=10), known(BIG, place=Place.HELD)) == Renamed("1")
        assert verdict(seen(BIG, inode=10), known(BIG, place=Place.UNSEEN)) == Renamed("1")

    def test_at_another_path_is_a_link_while_its_own_shows_it(self) -> None:
        assert verdict(seen(BIG, inode=10), known(BIG)) == Alias("1")

    @pytest.mark.parametrize("content", [b"", BIG[:-1], text(2, 9000), BIG[:2000] + text(2, 9000)])
    def test_with_other_content_is_another_file(self, content: bytes) -> None:
        assert verdict(seen(content, "/logs/app.log", 10), known(BIG)) == Replaced("1")

    def test_that_became_compressed_is_another_file(self) -> None:
        assert verdict(seen(BIG, "/logs/app.log", 10, packing=GZIP, size=None), known(BIG)) == Replaced("1")

    def test_of_a_small_file_that_is_gone_proves_nothing(self) -> None:
        assert verdict(seen(SMALL, inode=10), known(SMALL, place=Place.GONE)) == Replaced("1")
        assert verdict(seen(BIG, inode=10), known(BIG, place=Place.GONE)) == Renamed("1")

    def test_of_a_file_of_which_nothing_was_read_is_the_same(self) -> None:
        assert verdict(seen(text(2, 100), "/logs/app.log", 10), known(b"")) == Same("1")


class TestAnotherInode:
    def test_with_other_content_is_new(self) -> None:
        assert verdict(seen(text(2, 5000)), known(BIG)) == New()

    @pytest.mark.parametrize("place", [Place.CUT, Place.GONE])
    def test_goes_on_in_the_place_of_what_is_no_more(self, place: Place) -> None:
        assert verdict(seen(BIG + b"unread"), known(BIG, place=place)) == CopyOf("1", len(BIG), takes_over=True)

    def test_is_waited_for_while_the_original_may_still_be_truncated(self) -> None:
        assert verdict(seen(BIG), known(BIG)) == Wait()
        assert verdict(seen(BIG[:3000]), known(BIG)) == Wait()
        assert verdict(seen(SMALL), known(SMALL)) == Wait()

    def test_is_waited_for_while_the_original_is_held(self) -> None:
        assert verdict(seen(BIG, **QUIET), known(BIG, place=Place.HELD)) == Wait()

    def test_at_rest_beside_its_original_goes_on_where_both_agree(self) -> None:
        assert verdict(seen(BIG + b"more", **QUIET), known(BIG)) == CopyOf("1", len(BIG), takes_over=False)
        assert verdict(seen(BIG[:3000], **QUIET), known(BIG)) == CopyOf("1", 3000, takes_over=False)

    def test_that_never_comes_to_rest_is_not_waited_for_for_ever(self) -> None:
        assert verdict(seen(BIG, age_ms=12 * SETTLE_MS), known(BIG)) == CopyOf("1", len(BIG), takes_over=False)

    def test_with_the_same_header_and_other_lines_is_new_at_once(self) -> None:
        header = text(7, 2000)
        assert verdict(seen(header + text(2, 100)), known(header + text(3, 5000))) == New()
        assert verdict(seen(header + text(2, 9000)), known(header + text(3, 5000))) == New()
        assert verdict(seen(header + text(2, 9000)), known(header + text(3, 5000), place=Place.GONE)) == New()

    def test_that_is_nothing_but_the_same_header_is_read(self) -> None:
        header = text(7, PREFIX_BYTES + 10)
        assert verdict(seen(header, "/logs/other", **QUIET), known(header)) == New()

    def test_made_at_the_old_name_after_a_rename_is_new(self) -> None:
        renamed = {"path": "/logs/app.log.1", "place": Place.HERE}
        assert verdict(seen(BIG, "/logs/app.log"), known(BIG, **renamed)) == New()
        assert verdict(seen(SMALL, "/logs/app.log"), known(SMALL, **renamed)) == New()

    def test_of_a_file_of_which_nothing_was_read_is_read_in_its_place(self) -> None:
        unread = known(BIG, 0, prefix=print_of(BIG[:PREFIX_BYTES]))
        assert verdict(seen(BIG), unread) == Wait()
        assert verdict(seen(BIG, age_ms=12 * SETTLE_MS), unread) == New()
        for place in (Place.HELD, Place.UNSEEN):
            assert verdict(seen(BIG), replace(unread, place=place)) == Wait()
        for place in (Place.CUT, Place.GONE):
            assert verdict(seen(BIG), replace(unread, place=place)) == CopyOf("1", 0, takes_over=True)

    def test_of_a_small_file_of_which_nothing_was_read_needs_its_name_too(self) -> None:
        unread = known(BIG, 0, prefix=print_of(BIG[:100]), place=Place.GONE)
        assert verdict(seen(BIG), unread) == CopyOf("1", 0, takes_over=True)
        assert verdict(seen(BIG, "/logs/else"), unread) == New()

    def test_that_was_copied_before_the_last_lines_came_goes_on_at_the_last_place_that_agrees(self) -> None:
        file = known(BIG, place=Place.CUT, anchors=(anchor_at(3000, BIG[:3000]), anchor_at(5000, BIG)))
        assert verdict(seen(BIG[:4000]), file) == CopyOf("1", 3000, takes_over=False)
        assert verdict(seen(BIG[:2000]), file) == New()


class TestFewBytes:
    def test_prove_a_copy_only_together_with_the_name_and_a_truncation(self) -> None:
        cut = known(SMALL, place=Place.CUT)
        assert verdict(seen(SMALL), cut) == CopyOf("1", 500, takes_over=True)
        assert verdict(seen(SMALL, "/logs/job-2.log"), cut) == New()
        assert verdict(seen(SMALL), known(SMALL, place=Place.GONE)) == New()
        assert verdict(seen(SMALL, **QUIET), known(SMALL)) == New()

    def test_prove_a_compressed_copy_of_what_is_gone(self) -> None:
        packed = seen(SMALL, "/logs/app.log.1.gz", packing=GZIP, size=None)
        assert verdict(packed, known(SMALL, place=Place.GONE)) == CopyOf("1", 500, takes_over=True)
        assert verdict(packed, known(SMALL, place=Place.HELD)) == Wait()


def test_a_compressed_file_that_is_not_complete_is_waited_for() -> None:
    def look(begin: int, length: int) -> bytes:
        raise CutOff

    packed = seen(BIG, "/logs/app.log.1.gz", packing=GZIP, size=None, look=look)
    assert verdict(packed, known(BIG, place=Place.GONE)) == Wait()


def test_the_farthest_of_several_heirs_is_taken() -> None:
    near, far = known(BIG, 2000, place=Place.CUT), known(BIG, 4000, place=Place.CUT, key="2", inode=11)
    assert verdict(seen(BIG), near, far) == CopyOf("2", 4000, takes_over=True)


def test_headers_that_do_not_count_prove_nothing() -> None:
    file = known(BIG, 2000, header_bytes=4000)
    assert verdict(seen(BIG[:2000], **QUIET), file) == New()


@pytest.mark.parametrize(
    "name",
    [
        "app.log.1",
        "app.log-20260131",
        "app.log.2026-01-31",
        "app.log.gz",
        "app.log.2.gz",
        "app.log-1.zst",
        "app.log.old",
    ],
)
def test_names_of_rotations_are_akin(name: str) -> None:
    assert akin("/var/log/app.log", f"/archive/{name}")


@pytest.mark.parametrize("name", ["app2.log", "other.log", "app.log.tmp", "app.err"])
def test_other_names_are_not(name: str) -> None:
    assert not akin("/var/log/app.log", f"/var/log/{name}")


@dataclass(frozen=True)
class History:
    """A file as it was read, and as it is seen."""

    before: bytes
    read: int
    after: bytes


@st.composite
def histories(draw: st.DrawFn) -> History:
    before = text(draw(st.integers(1, 2)), draw(st.integers(0, 3000)))
    read = draw(st.integers(0, len(before)))
    grown = before + text(3, draw(st.integers(0, 500)))
    others = [
        grown,
        before[: draw(st.integers(0, len(before)))],
        text(4, draw(st.integers(0, 6000))),
        before[: draw(st.integers(0, len(before)))] + text(5, draw(st.integers(0, 4000))),
    ]
    return History(before, read, draw(st.sampled_from(others)))


def skipped(found: Verdict, file: Known) -> int:
    """So many bytes of what is seen are taken as read."""
    match found:
        case Same() | Renamed():
            return file.position
        case CopyOf(_, position, _):
            return position
    return 0


@given(
    histories(),
    st.sampled_from(list(Place)),
    st.sampled_from([10, 20]),
    st.sampled_from(["/logs/app.log", "/logs/app.log.1", "/logs/else"]),
    st.sampled_from([0.0, SETTLE_MS, 100 * SETTLE_MS]),
)
def test_nothing_is_skipped_that_was_not_read(
    history: History, place: Place, inode: int, path: str, age_ms: float
) -> None:
    """Whatever happened: what a verdict takes as read agrees with what was read, at its beginning and at its end."""
    file = known(history.before, history.read, place=place)
    found = verdict(seen(history.after, path, inode, quiet_ms=age_ms, age_ms=age_ms), file)
    skip = skipped(found, file)
    assert skip <= min(history.read, len(history.after))
    head, tail = min(skip, PREFIX_BYTES), max(0, skip - ANCHOR_BYTES)
    assert history.after[:head] == history.before[:head]
    assert history.after[tail:skip] == history.before[tail:skip]


@given(
    histories(),
    st.sampled_from([Place.HERE, Place.CUT, Place.GONE]),
    st.sampled_from(["/logs/app.log.1", "/logs/else"]),
)
def test_nobody_waits_for_ever(history: History, place: Place, path: str) -> None:
    file = known(history.before, history.read, place=place)
    ages = {"quiet_ms": 12 * SETTLE_MS, "age_ms": 12 * SETTLE_MS}
    assert verdict(seen(history.after, path, **ages), file) != Wait()
