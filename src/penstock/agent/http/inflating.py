"""Undoing content encodings, never beyond a bound: a bomb is refused after `bytes_max` bytes, not after it went off."""

from __future__ import annotations

import zlib
from typing import Final

ENCODINGS: Final = ("gzip", "deflate", "zstd")
_GZIP: Final = 16 + zlib.MAX_WBITS
_ZSTD_WINDOW_BYTES_MAX: Final = 8 << 20
_STEP_BYTES: Final = 1 << 18
# Each member costs a copy of what follows it, so a body of nothing but members would cost its square.
_MEMBERS_MAX: Final = 64


class TooLarge(Exception):
    """It inflates to more than is allowed."""


class NotInflatable(Exception):
    """It is not what its encoding says, or it ends too soon."""


class UnknownEncoding(Exception):
    """None of ENCODINGS."""


def inflate(data: bytes, encoding: str, bytes_max: int) -> bytes:
    """The plain bytes; raises one of the three exceptions above."""
    match encoding.strip().lower():
        case "" | "identity":
            return data
        case "gzip" | "x-gzip":
            return _inflate_gzip(data, bytes_max)
        case "deflate":
            return _inflate_member(zlib.decompressobj(zlib.MAX_WBITS), data, bytes_max)[0]
        case "zstd":
            return _inflate_zstd(data, bytes_max)
    raise UnknownEncoding(f"content-encoding {encoding!r} is not known; send plain, {', '.join(ENCODINGS)}")


def _inflate_gzip(data: bytes, bytes_max: int) -> bytes:
    """One member after the other, as gzip files may be put together."""
    parts: list[bytes] = []
    room = bytes_max
    for _ in range(_MEMBERS_MAX):
        plain, data = _inflate_member(zlib.decompressobj(_GZIP), data, room)
        parts.append(plain)
        room -= len(plain)
        if not data.lstrip(b"\0"):
            return b"".join(parts)
    raise NotInflatable(f"the body has more than {_MEMBERS_MAX} compressed members")


def _inflate_member(inflater: zlib._Decompress, data: bytes, bytes_max: int) -> tuple[bytes, bytes]:
    """The member's bytes and what follows it."""
    try:
        # One byte more than allowed tells a full one from one that is too large; 0 would mean without bound.
        plain = inflater.decompress(data, bytes_max + 1)
    except zlib.error as wrong:
        raise NotInflatable(f"the body is not compressed as its content-encoding says: {wrong}") from wrong
    if len(plain) > bytes_max:
        raise TooLarge(f"the body inflates to more than {bytes_max} bytes")
    if not inflater.eof:
        raise NotInflatable("the compressed body ends too soon")
    return plain, inflater.unused_data


def _inflate_zstd(data: bytes, bytes_max: int) -> bytes:
    """Once in small steps to see that it fits, then at once: only that way tells whether the last frame is whole."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX)
    parts: list[bytes] = []
    room = bytes_max
    try:
        with decompressor.stream_reader(data, read_across_frames=True) as reader:
            while part := reader.read(_STEP_BYTES):
                room -= len(part)
                if room < 0:
                    raise TooLarge(f"the body inflates to more than {bytes_max} bytes")
        for _ in range(_MEMBERS_MAX):
            frame = decompressor.decompressobj()
            parts.append(frame.decompress(data))
            if not frame.eof:
                raise NotInflatable("the compressed body ends too soon")
            data = frame.unused_data
            if not data:
                return b"".join(parts)
    except zstandard.ZstdError as wrong:
        raise NotInflatable(f"the body is not compressed as its content-encoding says: {wrong}") from wrong
    raise NotInflatable(f"the body has more than {_MEMBERS_MAX} compressed frames")
