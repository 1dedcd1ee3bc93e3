"""gzip and zstd, a piece at a time: what a file holds when it is inflated, from its beginning, in bounded memory."""

from __future__ import annotations

import io
import os
from typing import IO, Final, Protocol, cast

from penstock.model.inflating import CutShort, GzipStream, NotInflatable, zstd_frame

PLAIN: Final = "plain"
GZIP: Final = "gzip"
ZSTD: Final = "zstd"

_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
MAGIC_BYTES: Final = 4

PIECE_BYTES: Final = 128 << 10
WINDOW_BYTES_MAX: Final = 64 << 20
"""A zstd frame that needs more memory than this is refused."""


class CutOff(Exception):
    """The file ends in the middle: it is still being written, or was never written to its end."""


class Broken(Exception):
    """These bytes cannot be inflated, now or later."""


def packing_of(head: bytes) -> str:
    """By its first bytes; names lie."""
    if head.startswith(_GZIP_MAGIC):
        return GZIP
    return ZSTD if head.startswith(_ZSTD_MAGIC) else PLAIN


class Stream(Protocol):
    """Inflated bytes, in order. `read` returns b"" at the end; raises `CutOff`, `Broken` or `OSError`."""

    def read(self, length: int) -> bytes: ...


def inflate(descriptor: int, packing: str) -> Stream:
    """From the beginning of the file, whatever the descriptor's own position. The descriptor stays the caller's."""
    return _Zstd(descriptor) if packing == ZSTD else _Gzip(descriptor)


def skip(stream: Stream, position: int, tail_bytes: int) -> bytes:
    """Goes on to a position and returns the last bytes before it; fewer when the end comes first."""
    tail, left = b"", position
    while left:
        piece = stream.read(min(left, PIECE_BYTES))
        if not piece:
            return b""
        left -= len(piece)
        tail = (tail + piece)[-tail_bytes:]
    return tail


class _Gzip:
    """One member after another."""

    def __init__(self, descriptor: int) -> None:
        self._source = _Source(descriptor)
        self._stream = GzipStream(self._source.read)

    def read(self, length: int) -> bytes:
        try:
            return self._stream.read(length)
        except CutShort:
            raise CutOff from None
        except NotInflatable as error:
            raise Broken(f"not gzip after {self._source.at:,} bytes: {error.why}") from error


class _Zstd:
    """One frame after another."""

    def __init__(self, descriptor: int) -> None:
        import zstandard

        self._descriptor = descriptor
        self._error = zstandard.ZstdError
        inflater = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX)
        source = cast(IO[bytes], _Source(descriptor))
        self._reader = inflater.stream_reader(source, read_size=PIECE_BYTES, read_across_frames=True)

    def read(self, length: int) -> bytes:
        try:
            piece: bytes = self._reader.read(length)
        except self._error as error:
            raise Broken(f"not zstd: {error}") from error
        # The library takes the end of the file for the end of the frame.
        if not piece and not zstd_is_whole(self._descriptor):
            raise CutOff
        return piece


class _Source(io.RawIOBase):
    """A descriptor as something to read from, at a position of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self.at = descriptor, 0

    def read(self, length: int = -1, /) -> bytes:
        piece = os.pread(self._descriptor, PIECE_BYTES if length < 0 else length, self.at)
        self.at += len(piece)
        return piece


def zstd_is_whole(descriptor: int) -> bool:
    """Whether the last frame has its end; nothing is inflated to know it."""
    at, size = 0, os.fstat(descriptor).st_size
    try:
        while at < size:
            at = zstd_frame(lambda start, length: os.pread(descriptor, length, start), at, size).end
    except NotInflatable:
        return False
    return True
