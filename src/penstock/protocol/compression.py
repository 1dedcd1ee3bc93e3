"""The codecs of a batch's records: gzip, snappy in both framings, lz4 frames, zstd. Pure; libraries load at first use.

Unpacking is that of `model/inflating.py`, with its bounds. What comes out of a good blob may still be nonsense; the
kernels check records.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from penstock.model.inflating import (
    GZIP_WINDOW,
    XERIAL_HEADER,
    NotInflatable,
    TooLarge,
    inflate_gzip,
    inflate_lz4,
    inflate_snappy,
    inflate_zstd,
)
from penstock.protocol.wire import Buffer, Malformed

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

CODECS: Final = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
CODEC_NAMES: Final = tuple(CODECS)

_XERIAL_CHUNK_BYTES: Final = 32 << 10

# Kafka's default level 9 means the fast compressor; every other level is one of the slow one's.
_LZ4_FAST_LEVEL: Final = 9
_LZ4_SLOW_LEVELS: Final = (3, 12)
_ZSTD_LEVEL: Final = 3


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` as Kafka's own producers would pack it. `level` is Kafka's number for the codec; None is its default."""
    if codec == GZIP:
        packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, GZIP_WINDOW)
        return packer.compress(data) + packer.flush()
    if codec == SNAPPY:
        return _xerial(data)
    if codec == LZ4:
        return _lz4(data, _LZ4_FAST_LEVEL if level is None else level)
    if codec == ZSTD:
        import zstandard

        packed: bytes = zstandard.ZstdCompressor(level=_ZSTD_LEVEL if level is None else level).compress(data)
        return packed
    assert codec == NONE, f"codec {codec} does not exist"
    return bytes(data)


def decompress(codec: int, data: Buffer, limit: int) -> bytes:
    """The bytes that `data` holds; Malformed when they are broken, cut short or more than `limit`."""
    inflate = _INFLATERS.get(codec)
    if inflate is None:
        raise Malformed(f"compression codec {codec} does not exist")
    try:
        return inflate(data, limit)
    except TooLarge:
        raise Malformed(f"records decompress to more than {limit} bytes") from None
    except NotInflatable as broken:
        raise Malformed(str(broken)) from broken


def _plain(data: Buffer, limit: int) -> bytes:
    if len(data) > limit:
        raise TooLarge(limit)
    return bytes(data)


def _xerial(data: Buffer) -> bytes:
    import cramjam

    out = bytearray(XERIAL_HEADER)
    with memoryview(data) as view:
        for at in range(0, len(view), _XERIAL_CHUNK_BYTES):
            block = memoryview(cramjam.snappy.compress_raw(view[at : at + _XERIAL_CHUNK_BYTES]))
            out += len(block).to_bytes(4, "big")
            out += block
    return bytes(out)


def _lz4(data: Buffer, level: int) -> bytes:
    import lz4.frame

    slowest, fastest = _LZ4_SLOW_LEVELS[1], _LZ4_SLOW_LEVELS[0]
    packed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level == _LZ4_FAST_LEVEL else min(max(level, fastest), slowest),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,  # Kafka's Java reader cannot follow linked blocks
        store_size=False,
    )
    return packed


_INFLATERS: Final[dict[int, Callable[[Buffer, int], bytes]]] = {
    NONE: _plain,
    GZIP: inflate_gzip,
    SNAPPY: inflate_snappy,
    LZ4: inflate_lz4,
    ZSTD: inflate_zstd,
}
