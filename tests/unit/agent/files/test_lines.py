"""Lines from bytes, whatever the pieces in which they are read."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.agent.inputs.files.lines import Splitter, Taken, take, take_rest

CONTENT = st.lists(st.sampled_from([b"", b"a", b"bc\r", b"x" * 30, b"y" * 70, b"\xff\xfe", b"z" * 200]), max_size=12)


def expected(content: bytes, limit: int) -> list[tuple[int, bytes, bool]]:
    found, at = [], 0
    for line in content.split(b"\n")[:-1]:
        short = line[:limit]
        found.append((at, short[:-1] if short.endswith(b"\r") else short, len(line) > limit))
        at += len(line) + 1
    return found


def told(taken: Taken) -> list[tuple[int, bytes, bool]]:
    return [(at, line, i in taken.cut) for i, (at, line) in enumerate(zip(taken.positions, taken.lines, strict=True))]


@given(CONTENT, st.binary(max_size=5).filter(lambda rest: b"\n" not in rest and b"\0" not in rest), st.integers(1, 90))
def test_a_growing_file_gives_each_line_once_at_its_place(lines: list[bytes], rest: bytes, chunk_bytes: int) -> None:
    content = b"".join(line + b"\n" for line in lines) + rest
    found: list[tuple[int, bytes, bool]] = []
    position, scanned, zeros = 0, 0, True
    for size in [*range(0, len(content), 7), len(content)]:

        def look(at: int, length: int, size: int = size) -> bytes:
            return content[:size][at : at + length]

        more = True
        while more:
            taken = take(look, position, scanned, chunk_bytes, 64, zeros=zeros)
            found += told(taken)
            assert not taken.raw or content[: taken.end].endswith(taken.raw)
            position, scanned, zeros, more = taken.end, taken.scanned, taken.zeros, taken.more
    assert found == expected(content, 64)
    assert position == len(content) - len(rest)
    last = take_rest(lambda at, length: content[at : at + length], position, len(content), 64)
    assert last.lines == ([rest.removesuffix(b"\r")] if rest else [])
    assert last.end == len(content)


@given(CONTENT, st.binary(max_size=100).filter(lambda rest: b"\n" not in rest), st.integers(1, 90))
@example([b"z" * 200], b"", 199)
def test_a_stream_gives_each_line_once_at_its_place(lines: list[bytes], rest: bytes, chunk_bytes: int) -> None:
    content = b"".join(line + b"\n" for line in lines) + rest
    splitter, found = Splitter(0, 64), list[tuple[int, bytes, bool]]()
    for at in range(0, len(content), chunk_bytes):
        taken = splitter.feed(content[at : at + chunk_bytes])
        found += told(taken)
        assert not taken.raw or content[: taken.end].endswith(taken.raw)
    assert found == expected(content, 64)
    last = splitter.finish()
    assert last.lines == ([rest[:64].removesuffix(b"\r")] if rest else [])
    assert (last.end, bool(last.cut)) == (len(content), len(rest) > 64)


@pytest.mark.parametrize("before", [b"", b"a line\n", b"line"])
def test_a_hole_is_passed_over_when_something_stands_behind_it(before: bytes) -> None:
    content = before + bytes(1000) + b"after the hole\nnext\n"
    looked: list[int] = []

    def look(at: int, length: int) -> bytes:
        looked.append(length)
        return content[at : at + length]

    found, position, scanned, zeros = [], 0, 0, True
    for _ in range(30):
        taken = take(look, position, scanned, 100, 2000, zeros=zeros)
        found += taken.lines
        position, scanned, zeros = taken.end, taken.scanned, taken.zeros
    if before == b"line":
        # Zeros in the middle of a line belong to it.
        assert found == [b"line" + bytes(1000) + b"after the hole", b"next"]
    else:
        assert found == [*([b"a line"] if before else []), b"after the hole", b"next"]
        assert max(looked) == 100
    assert position == len(content)


def test_zeros_with_nothing_behind_them_are_waited_for() -> None:
    taken = take(lambda at, length: bytes(100)[at : at + length], 0, 0, 64, 64)
    assert (taken.end, taken.lines) == (0, [])
