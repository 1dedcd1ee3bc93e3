"""Undoing content encodings, never beyond a bound, with words about bodies."""

from __future__ import annotations

from typing import Final

from penstock.model.inflating import (
    CutShort,
    NotInflatable,
    TooLarge,
    inflate_gzip,
    inflate_zlib,
    inflate_zstd,
)

ENCODINGS: Final = ("gzip", "deflate", "zstd")
_ZSTD_WINDOW_BYTES_MAX: Final = 8 << 20


class BodyTooLarge(Exception):
    """It inflates to more than is allowed."""


class BadBody(Exception):
    """It is not what its encoding says, or it ends too soon."""


class UnknownEncoding(Exception):
    """None of ENCODINGS."""


def inflate(data: bytes, encoding: str, bytes_max: int) -> bytes:
    """The plain bytes; raises one of the three exceptions above."""
    try:
        match encoding.strip().lower():
            case "" | "identity":
                return data
            case "gzip" | "x-gzip":
                return inflate_gzip(data, bytes_max, padded=True)
            case "deflate":
                return inflate_zlib(data, bytes_max)
            case "zstd":
                return inflate_zstd(data, bytes_max, window_bytes_max=_ZSTD_WINDOW_BYTES_MAX)
    except TooLarge:
        raise BodyTooLarge(f"the body inflates to more than {bytes_max} bytes") from None
    except CutShort:
        raise BadBody("the compressed body ends too soon") from None
    except NotInflatable as wrong:
        raise BadBody(f"the body is not compressed as its content-encoding says: {wrong.why}") from wrong
    raise UnknownEncoding(f"content-encoding {encoding!r} is not known; send plain, {', '.join(ENCODINGS)}")
