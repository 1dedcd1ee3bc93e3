"""Syslog messages out of a stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.inputs.lines import Framed
from penstock.agent.inputs.syslog.framing import SyslogFraming

LIMIT = 2_000


def framed(*pieces: bytes, limit: int = LIMIT, room_bytes: int = 1 << 40) -> tuple[list[bytes], list[bytes]]:
    """All messages, and those that were cut."""
    framing = SyslogFraming(limit)
    messages: list[bytes] = []
    cut: list[bytes] = []
    held_bytes_max = limit + 12 + max(map(len, pieces), default=0)

    def take(some: Framed) -> None:
        messages.extend(some.messages)
        cut.extend(some.messages[at] for at in some.cut)
        assert framing.held_bytes <= held_bytes_max

    for piece in pieces:
        take(framing.feed(piece, room_bytes))
    take(framing.end())
    assert framing.held_bytes == 0
    return messages, cut


def counted(message: bytes) -> bytes:
    return b"%d %s" % (len(message), message)


def test_both_framings_on_one_connection() -> None:
    stream = counted(b"<1>a\nb") + b"<2>line\r\n" + counted(b"<3>c\n") + b"\n\n<4>x\0\n" + b"12 apples\n" + b"<5>last"
    assert framed(stream) == ([b"<1>a\nb", b"<2>line", b"<3>c", b"<4>x", b"12 apples", b"<5>last"], [])


@given(st.data())
def test_how_it_is_cut_into_pieces_does_not_matter(data: st.DataObject) -> None:
    plain = st.binary(max_size=40).map(lambda body: b"<13>" + body.replace(b"\n", b" ").strip(b"\r\0 ") + b".")
    messages = data.draw(st.lists(st.tuples(st.booleans(), plain), max_size=8))
    stream = b"".join(counted(body) if by_count else body + b"\n" for by_count, body in messages)
    wanted = [body for _, body in messages]
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    pieces = [stream[begin:end] for begin, end in zip([0, *places], [*places, len(stream)], strict=True)]
    assert framed(*pieces) == (wanted, [])
    assert framed(*(bytes([byte]) for byte in stream)) == (wanted, [])


@given(st.lists(st.binary(max_size=80), max_size=20), st.integers(10, 60), st.integers(0, 100))
def test_no_bytes_make_it_raise_or_hold_more(pieces: list[bytes], limit: int, room_bytes: int) -> None:
    messages, _ = framed(*pieces, limit=limit, room_bytes=room_bytes)
    assert all(len(message) <= max(limit, 1_024) for message in messages)


def test_what_is_too_long_is_cut_and_the_next_is_whole() -> None:
    long, next_one = b"<1>" + b"x" * 3 * LIMIT, b"<2>fine"
    for stream in (counted(long) + next_one, long + b"\n" + next_one):
        for size in (1, 7, 1_500, 1 << 20):
            pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
            assert framed(*pieces) == ([long[:LIMIT], next_one], [long[:LIMIT]])


def test_an_announced_size_reserves_nothing_and_its_end_is_cut() -> None:
    assert framed(b"999999999 <1>abc") == ([b"<1>abc"], [b"<1>abc"])


def test_without_room_for_parts_they_are_cut_early() -> None:
    long = b"<1>" + b"x" * 1_800
    pieces = [long[at : at + 100] for at in range(0, len(long), 100)]
    messages, cut = framed(*pieces, b"\n<2>fine\n", room_bytes=0)
    assert messages == [long[:1_024], b"<2>fine"]
    assert cut == [long[:1_024]]


def test_a_wrong_count_is_over_at_the_next_line_break() -> None:
    assert framed(b"9 <1>abcdefgh\n<2>fine\n")[0] == [b"<1>abcdef", b"gh", b"<2>fine"]
