"""Records for the tests of the grammar."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Sample:
    topic: str = "t"
    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    timestamp_type: int = 0
    leader_epoch: int = 0
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


contents = st.none() | st.binary(max_size=12) | st.text(max_size=8).map(str.encode)
header_names = st.text(st.characters(codec="utf-8"), max_size=5)
records = st.builds(
    Sample,
    topic=st.text("abc._-", min_size=1, max_size=5),
    partition=st.integers(0, 99),
    offset=st.integers(0, 2**62),
    timestamp=st.integers(-1, 2**41),
    leader_epoch=st.integers(-1, 99),
    key=contents,
    value=contents,
    headers=st.lists(st.tuples(header_names, contents), max_size=3).map(tuple),
)


class Chunks:
    """A stream that gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = data, size

    def read1(self, size: int = -1, /) -> bytes:
        chunk, self._data = self._data[: self._size], self._data[self._size :]
        return chunk
