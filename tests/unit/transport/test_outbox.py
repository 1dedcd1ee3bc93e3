"""Chunks out of parts."""

from __future__ import annotations

import pytest

from penstock.protocol.wire import Spans
from penstock.transport.outbox import Outbox


class Text:
    def __init__(self, data: bytes, short_by: int = 0) -> None:
        self.data, self.size, self.short_by = data, len(data), short_by

    def read(self, at: int = 0, size: int | None = None) -> bytes:
        return self.data[at : at + (size or 0) - self.short_by]


def everything(outbox: Outbox, room: int) -> list[bytes]:
    chunks = []
    while outbox:
        chunks.append(bytes(outbox.take(room)))
    return chunks


def test_chunks_are_as_large_as_the_room_and_cross_parts() -> None:
    outbox = Outbox()
    outbox.put([b"abc", Text(b"defgh"), Spans([Text(b"ij"), b"k"]), b"", Text(b"")])
    assert everything(outbox, 4) == [b"abcd", b"efgh", b"ijk"]


def test_a_part_that_fits_is_passed_on_without_a_copy() -> None:
    outbox, part = Outbox(), b"x" * 100
    outbox.put([part])
    assert outbox.take(100) is part


def test_a_span_that_gives_less_than_it_promised_is_an_error() -> None:
    outbox = Outbox()
    outbox.put([Text(b"abcdef", short_by=1)])
    with pytest.raises(EOFError):
        outbox.take(6)
