"""The codecs of a batch's records: gzip, snappy in both framings, lz4 frames, zstd. Pure; libraries load at first use.

Sizes come from strangers: `decompress` never makes more than `limit` bytes of output, and sizes that a header announces
are judged before memory is asked for. What comes out of a good blob may still be nonsense; the kernels check records.
"""

from __future__ import annotations

import zlib
from typing import Final

from penstock.protocol.wire import Buffer, Malformed

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

CODECS: Final = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
CODEC_NAMES: Final = tuple(CODECS)

_GZIP_WINDOW: Final = 31  # zlib's way of asking for a gzip header
_GZIP_MAGIC: Final = b"\x1f\x8b"

# The framing of snappy-java: a header, then chunks of a length and a raw snappy block each.
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_CHUNK_BYTES: Final = 32 << 10
# Three bytes of snappy copy at most 64, so a larger announcement is a lie.
_SNAPPY_RATIO_MAX: Final = 22

# Kafka's default level 9 means the fast compressor; every other level is one of the slow one's.
_LZ4_FAST_LEVEL: Final = 9
_LZ4_SLOW_LEVELS: Final = (3, 12)
_ZSTD_LEVEL: Final = 3
_ZSTD_BLOCK_BYTES_MAX: Final = 128 << 10

_FIRST_GUESS_BYTES: Final = 64 << 10


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` as Kafka's own producers would pack it. `level` is Kafka's number for the codec; None is its default."""
    if codec == GZIP:
        packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
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
    unpack = _UNPACKERS.get(codec)
    if unpack is None:
        raise Malformed(f"compression codec {codec} does not exist")
    unpacked: bytes = unpack(data, limit)
    return unpacked


def _too_large(limit: int) -> Malformed:
    return Malformed(f"records decompress to more than {limit} bytes")


def _plain(data: Buffer, limit: int) -> bytes:
    if len(data) > limit:
        raise _too_large(limit)
    return bytes(data)


def _ungzip(data: Buffer, limit: int) -> bytes:
    """One gzip member after another, as the format allows."""
    unpacked: list[bytes] = []
    left = limit
    rest: Buffer = data
    while True:
        unpacker = zlib.decompressobj(_GZIP_WINDOW)
        try:
            unpacked.append(unpacker.decompress(rest, left + 1))
        except zlib.error as broken:
            raise Malformed(f"broken gzip: {broken}") from broken
        left -= len(unpacked[-1])
        if left < 0:
            raise _too_large(limit)
        if not unpacker.eof:
            raise Malformed("gzip data is cut short")
        rest = unpacker.unused_data
        if not rest:
            return unpacked[0] if len(unpacked) == 1 else b"".join(unpacked)
        if rest[:2] != _GZIP_MAGIC:
            raise Malformed("bytes follow the gzip data")


def _xerial(data: Buffer) -> bytes:
    import cramjam

    out = bytearray(_XERIAL_HEADER)
    with memoryview(data) as view:
        for at in range(0, len(view), _XERIAL_CHUNK_BYTES):
            block = memoryview(cramjam.snappy.compress_raw(view[at : at + _XERIAL_CHUNK_BYTES]))
            out += len(block).to_bytes(4, "big")
            out += block
    return bytes(out)


def _unsnappy(data: Buffer, limit: int) -> bytes:
    with memoryview(data) as view:
        if bytes(view[:8]) != _XERIAL_MAGIC:
            return _unsnappy_block(view, limit)
        out = bytearray()
        at = 0
        while at < len(view):
            # Streams may be written one after the other, each with its header.
            if bytes(view[at : at + 8]) == _XERIAL_MAGIC:
                at += len(_XERIAL_HEADER)
                continue
            size = int.from_bytes(view[at : at + 4], "big")
            at += 4
            if size > len(view) - at:
                raise Malformed("a snappy chunk is cut short")
            out += _unsnappy_block(view[at : at + size], limit - len(out))
            at += size
        if at != len(view):
            raise Malformed("snappy data is cut short")
        return bytes(out)


def _unsnappy_block(block: memoryview, limit: int) -> bytes:
    import cramjam

    announced = shift = 0
    for byte in block[:5]:
        announced |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise Malformed("a snappy block has no length")
    if announced > limit:
        raise _too_large(limit)
    if announced > len(block) * _SNAPPY_RATIO_MAX:
        raise Malformed("a snappy block announces more than it can hold")
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as broken:
        raise Malformed(f"broken snappy: {broken}") from broken


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


def _unlz4(data: Buffer, limit: int) -> bytes:
    import lz4.frame

    unpacker = lz4.frame.LZ4FrameDecompressor()
    unpacked: list[bytes] = []
    left = limit
    # The library asks for as much memory as it is allowed to fill, so it is allowed little at first.
    room = max(_FIRST_GUESS_BYTES, 4 * len(data))
    piece: Buffer = data
    while True:
        try:
            unpacked.append(unpacker.decompress(piece, max_length=min(room, left + 1)))
        except (RuntimeError, EOFError) as broken:
            raise Malformed(f"broken lz4: {broken}") from broken
        left -= len(unpacked[-1])
        if left < 0:
            raise _too_large(limit)
        if unpacker.eof:
            break
        if unpacker.needs_input:
            raise Malformed("lz4 data is cut short")
        piece, room = b"", room * 4
    if unpacker.unused_data:
        raise Malformed("bytes follow the lz4 frame")
    return unpacked[0] if len(unpacked) == 1 else b"".join(unpacked)


def _unzstd(data: Buffer, limit: int) -> bytes:
    import zstandard

    unpacker = zstandard.ZstdDecompressor()
    unpacked: list[bytes] = []
    left = limit
    at = 0
    while at < len(data) or not unpacked:
        try:
            end, output_bytes_max = _zstd_frame(data, at)
            frame = memoryview(data)[at:end]
            announced = zstandard.frame_content_size(frame)
            if announced > left:
                raise _too_large(limit)
            # One byte more than is allowed tells a frame that fills its limit from one that exceeds it.
            unpacked.append(unpacker.decompress(frame, max_output_size=min(output_bytes_max, left) + 1))
        except zstandard.ZstdError as broken:
            raise Malformed(f"zstd is broken or over {limit} bytes: {broken}") from broken
        left -= len(unpacked[-1])
        if left < 0:
            raise _too_large(limit)
        at = end
    return unpacked[0] if len(unpacked) == 1 else b"".join(unpacked)


def _zstd_frame(data: Buffer, at: int) -> tuple[int, int]:
    """Where the frame at `at` ends, and how much its blocks can hold: the library tells neither before it unpacks."""
    import zstandard

    blocks = 0
    with memoryview(data)[at:] as frame:
        position = zstandard.frame_header_size(frame)
        checksum_bytes = 4 if frame[4] & 0x04 else 0
        last = False
        while not last:
            block = int.from_bytes(frame[position : position + 3], "little")
            last = bool(block & 1)
            repeated = (block >> 1) & 3 == 1
            position += 3 + (1 if repeated else block >> 3)
            blocks += 1
            if position > len(frame):
                raise Malformed("zstd data is cut short")
        if position + checksum_bytes > len(frame):
            raise Malformed("zstd data is cut short")
        return at + position + checksum_bytes, blocks * _ZSTD_BLOCK_BYTES_MAX


_UNPACKERS: Final = {NONE: _plain, GZIP: _ungzip, SNAPPY: _unsnappy, LZ4: _unlz4, ZSTD: _unzstd}
