"""Undoing compression, in bounded memory: the one place that does it. Pure; libraries load at first use.

Sizes come from strangers. Nothing here makes more than `bytes_max` bytes of output, and a size that a header announces
is judged before memory is asked for: a bomb is refused when the bound is reached, not after it went off. What comes
out of a good blob may still be nonsense.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    import zstandard

Buffer: TypeAlias = bytes | bytearray | memoryview
Peek: TypeAlias = Callable[[int, int], Buffer]
"""(position, length) -> the bytes there, fewer at the end."""

GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
"""zlib's way of asking for a gzip header."""
MEMBERS_MAX: Final = 64
"""Of one blob. Each costs a copy of what follows it, so a blob of nothing but members would cost its square."""

# The framing of snappy-java: a header, then chunks of a length and a raw snappy block each.
XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
# Three bytes of snappy copy at most 64, so a larger announcement is a lie.
_SNAPPY_RATIO_MAX: Final = 22

_LZ4_FIRST_GUESS_BYTES: Final = 64 << 10

_ZSTD_BLOCK_BYTES_MAX: Final = 128 << 10
_ZSTD_HEADER_BYTES_MAX: Final = 18
_ZSTD_BLOCK_HEADER_BYTES: Final = 3
_ZSTD_REPEATED: Final = 1
_ZSTD_SKIPPABLE_MAGIC: Final = b"\x2a\x4d\x18"


class TooLarge(PenstockError):
    """It inflates to more than is allowed."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"it inflates to more than {bytes_max} bytes")


class NotInflatable(PenstockError):
    """These bytes are not what they are said to be, now or later. `why` is for people."""

    def __init__(self, packing: str, why: str) -> None:
        super().__init__(f"broken {packing}: {why}")
        self.why = why


class CutShort(NotInflatable):
    """The end is missing."""

    def __init__(self, packing: str) -> None:
        super().__init__(packing, "the data is cut short")


# gzip and deflate


def inflate_gzip(data: Buffer, bytes_max: int, *, padded: bool = False) -> bytes:
    """One gzip member after another, as the format allows; `padded` lets zeros follow the last."""
    parts: list[bytes] = []
    left, rest = bytes_max, data
    for _ in range(MEMBERS_MAX):
        plain, rest = _inflate_member(zlib.decompressobj(GZIP_WINDOW), "gzip", rest, left)
        parts.append(plain)
        left -= len(plain)
        if not rest or (padded and not rest.strip(b"\0")):
            return parts[0] if len(parts) == 1 else b"".join(parts)
    raise NotInflatable("gzip", f"more than {MEMBERS_MAX} members follow each other")


def inflate_zlib(data: Buffer, bytes_max: int) -> bytes:
    """What HTTP calls deflate; bytes that follow it are nobody's."""
    return _inflate_member(zlib.decompressobj(), "deflate", data, bytes_max)[0]


def _inflate_member(inflater: zlib._Decompress, packing: str, data: Buffer, bytes_max: int) -> tuple[bytes, bytes]:
    """What the member holds, and what follows it."""
    try:
        # One byte more than allowed tells a full one from one that is too large; 0 would mean without bound.
        plain = inflater.decompress(data, bytes_max + 1)
    except zlib.error as broken:
        raise NotInflatable(packing, str(broken)) from broken
    if len(plain) > bytes_max:
        raise TooLarge(bytes_max)
    if not inflater.eof:
        raise CutShort(packing)
    return plain, inflater.unused_data


class GzipStream:
    """A piece at a time, for what is too large to be held: `more` gives the next packed bytes, b"" at their end.

    Any number of members follow each other, as `gzip` and `cat` make them, and zeros follow the last.
    """

    def __init__(self, more: Callable[[], bytes]) -> None:
        self._more = more
        self._packed = b""
        self._inflater = zlib.decompressobj(GZIP_WINDOW)
        self._first, self._begun = True, False

    def read(self, length: int) -> bytes:
        """At most so many bytes, b"" at the end. CutShort, NotInflatable."""
        while True:
            if self._inflater.eof:
                self._packed = self._inflater.unused_data.lstrip(b"\0")
                self._inflater, self._first, self._begun = zlib.decompressobj(GZIP_WINDOW), False, False
            if not self._packed:
                self._packed = self._more()
                if not self._packed:
                    if self._begun:
                        raise CutShort("gzip")
                    return b""
                if not self._first and not self._begun:
                    self._packed = self._packed.lstrip(b"\0")
                    continue
            self._begun = True
            try:
                piece = self._inflater.decompress(self._packed, length)
            except zlib.error as broken:
                raise NotInflatable("gzip", str(broken)) from broken
            self._packed = self._inflater.unconsumed_tail
            if piece:
                return piece


# snappy


def inflate_snappy(data: Buffer, bytes_max: int) -> bytes:
    """A raw block, or the chunks of snappy-java."""
    with memoryview(data) as view:
        if bytes(view[:8]) != XERIAL_MAGIC:
            return _inflate_snappy_block(view, bytes_max)
        out = bytearray()
        at = 0
        while at < len(view):
            # Streams may be written one after the other, each with its header.
            if bytes(view[at : at + 8]) == XERIAL_MAGIC:
                at += len(XERIAL_HEADER)
                continue
            size = int.from_bytes(view[at : at + 4], "big")
            at += 4
            if size > len(view) - at:
                raise CutShort("snappy")
            out += _inflate_snappy_block(view[at : at + size], bytes_max - len(out))
            at += size
        if at != len(view):
            raise CutShort("snappy")
        return bytes(out)


def _inflate_snappy_block(block: memoryview, bytes_max: int) -> bytes:
    import cramjam

    announced = shift = 0
    for byte in block[:5]:
        announced |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise NotInflatable("snappy", "a block has no length")
    if announced > bytes_max:
        raise TooLarge(bytes_max)
    if announced > len(block) * _SNAPPY_RATIO_MAX:
        raise NotInflatable("snappy", "a block announces more than it can hold")
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as broken:
        raise NotInflatable("snappy", str(broken)) from broken


# lz4


def inflate_lz4(data: Buffer, bytes_max: int) -> bytes:
    """One frame."""
    import lz4.frame

    inflater = lz4.frame.LZ4FrameDecompressor()
    parts: list[bytes] = []
    left = bytes_max
    # The library asks for as much memory as it is allowed to fill, so it is allowed little at first.
    room = max(_LZ4_FIRST_GUESS_BYTES, 4 * len(data))
    piece: Buffer = data
    while True:
        try:
            parts.append(inflater.decompress(piece, max_length=min(room, left + 1)))
        except (RuntimeError, EOFError) as broken:
            raise NotInflatable("lz4", str(broken)) from broken
        left -= len(parts[-1])
        if left < 0:
            raise TooLarge(bytes_max)
        if inflater.eof:
            break
        if inflater.needs_input:
            raise CutShort("lz4")
        piece, room = b"", room * 4
    if inflater.unused_data:
        raise NotInflatable("lz4", "bytes follow the frame")
    return parts[0] if len(parts) == 1 else b"".join(parts)


# zstd


class ZstdFrame(NamedTuple):
    """Where a frame ends, and how much its blocks can hold: the library tells neither before it unpacks."""

    end: int
    holds_bytes_max: int


def zstd_frame(peek: Peek, at: int, size: int) -> ZstdFrame:
    """The frame that begins at `at`, of `size` bytes in all. Its block headers are walked over (RFC 8878, 3.1.1)."""
    import zstandard

    head = peek(at, _ZSTD_HEADER_BYTES_MAX)
    if bytes(head[1:4]) == _ZSTD_SKIPPABLE_MAGIC:
        return _whole(ZstdFrame(at + 8 + int.from_bytes(head[4:8], "little"), 0), size)
    try:
        at += zstandard.frame_header_size(head)
    except zstandard.ZstdError as broken:
        raise NotInflatable("zstd", str(broken)) from broken
    blocks, last = 0, False
    while not last:
        block = peek(at, _ZSTD_BLOCK_HEADER_BYTES)
        if len(block) < _ZSTD_BLOCK_HEADER_BYTES:
            raise CutShort("zstd")
        header = int.from_bytes(block, "little")
        last = bool(header & 1)
        repeated = (header >> 1) & 3 == _ZSTD_REPEATED
        at += _ZSTD_BLOCK_HEADER_BYTES + (1 if repeated else header >> 3)
        blocks += 1
    checksum_bytes = 4 if head[4] & 0x04 else 0
    return _whole(ZstdFrame(at + checksum_bytes, blocks * _ZSTD_BLOCK_BYTES_MAX), size)


def _whole(frame: ZstdFrame, size: int) -> ZstdFrame:
    if frame.end > size:
        raise CutShort("zstd")
    return frame


def inflate_zstd(data: Buffer, bytes_max: int, *, window_bytes_max: int = 0) -> bytes:
    """One frame after another. A frame may not need more memory than `window_bytes_max`; 0 is the library's bound."""
    import zstandard

    inflater = zstandard.ZstdDecompressor(max_window_size=window_bytes_max)
    parts: list[bytes] = []
    left, at = bytes_max, 0
    with memoryview(data) as view:
        for _ in range(MEMBERS_MAX):
            end, holds_bytes_max = zstd_frame(lambda start, length: view[start : start + length], at, len(view))
            if holds_bytes_max:
                parts.append(_inflate_frame(inflater, view[at:end], holds_bytes_max, left))
                left -= len(parts[-1])
                if left < 0:
                    raise TooLarge(bytes_max)
            at = end
            if at == len(view):
                return parts[0] if len(parts) == 1 else b"".join(parts)
    raise NotInflatable("zstd", f"more than {MEMBERS_MAX} frames follow each other")


def _inflate_frame(
    inflater: zstandard.ZstdDecompressor, frame: memoryview, holds_bytes_max: int, bytes_max: int
) -> bytes:
    """What a whole frame holds; when that is more than `bytes_max`, one byte more of it, or TooLarge."""
    from zstandard import ZstdError, frame_content_size

    try:
        announced = frame_content_size(frame)
        if announced > holds_bytes_max:
            raise NotInflatable("zstd", "a frame announces more than it can hold")
        if announced > bytes_max:
            raise TooLarge(bytes_max)
        if announced >= 0:
            return inflater.decompress(frame)
        with inflater.stream_reader(frame) as reader:
            return reader.read(min(holds_bytes_max, bytes_max) + 1)
    except ZstdError as broken:
        raise NotInflatable("zstd", str(broken)) from broken
