"""Lines out of a stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.inputs.lines import Framed, LineFraming


def framed(*pieces: bytes, limit: int = 1 << 20, keep_empty: bool = True, room_bytes: int = 1 << 40) -> Framed:
    framing = LineFraming(limit, keep_empty=keep_empty)
    whole = Framed()
    for some in [*(framing.feed(piece, room_bytes) for piece in pieces), framing.end()]:
        whole.cut.extend(len(whole.messages) + at for at in some.cut)
        whole.messages.extend(some.messages)
    return whole


def test_lines_and_the_last_without_its_line_break() -> None:
    assert framed(b"a\nb\r\n\nc\rd\n", b"last").messages == [b"a", b"b", b"", b"c\rd", b"last"]
    assert framed(b"\n\na\n\n", keep_empty=False).messages == [b"a"]
    assert framed(b"a\n").messages == [b"a"]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8), st.integers(1, 60))
def test_how_it_is_cut_into_pieces_does_not_matter(data: bytes, places: list[int], limit: int) -> None:
    cuts = sorted(min(place, len(data)) for place in places)
    pieces = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    wanted = [line.removesuffix(b"\r") for line in lines]
    found = framed(*pieces, limit=limit)
    assert found.messages == [line[:limit] for line in wanted]
    assert found.cut == [at for at, line in enumerate(wanted) if len(line) > limit]


def test_an_endless_line_is_given_out_once_and_holds_nothing() -> None:
    framing = LineFraming(1_000)
    given_out = [message for _ in range(100) for message in framing.feed(b"x" * 500).messages]
    assert given_out == [b"x" * 1_000]
    assert framing.held_bytes == 0
    assert framing.feed(b"xx\nnext\n").messages == [b"next"]


def test_without_room_a_line_is_cut_early() -> None:
    found = framed(*[b"x" * 100] * 50, b"\nnext\n", room_bytes=0)
    assert [len(line) for line in found.messages] == [1_024, 4]
    assert found.cut == [0]
