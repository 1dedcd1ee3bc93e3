"""Codecs: ours and other writers' bytes, and what is refused."""

from __future__ import annotations

import contextlib
import gzip
import subprocess
import sys
import tracemalloc

import cramjam
import lz4.frame
import pytest
import zstandard
from aiokafka.codec import lz4_decode, snappy_decode
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.protocol.compression import CODEC_NAMES, CODECS, GZIP, LZ4, SNAPPY, ZSTD, compress, decompress
from penstock.protocol.wire import Malformed
from tests.properties import examples

PACKED = sorted(set(CODECS.values()) - {0})
TEXT = b"".join(b"record %d of many; " % i for i in range(9_000))  # several lz4 blocks and snappy chunks


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one", "long"])
def test_what_goes_in_comes_out(codec: int, data: bytes) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        assert decompress(codec, memoryview(compress(codec, buffer)), len(data)) == data


@settings(max_examples=examples(50))
@given(st.sampled_from(PACKED), st.binary(max_size=300), st.integers(0, 300))
def test_random_bytes_unpack_or_are_malformed(codec: int, noise: bytes, limit: int) -> None:
    with contextlib.suppress(Malformed):
        assert len(decompress(codec, noise, limit)) <= limit


@settings(max_examples=examples(100))
@given(st.sampled_from(PACKED), st.data())
def test_changed_bytes_unpack_or_are_malformed(codec: int, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, TEXT[:2_000]))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Malformed):
        assert len(decompress(codec, packed, 2_000)) <= 2_000


@pytest.mark.parametrize("codec", PACKED, ids=lambda codec: CODEC_NAMES[codec])
def test_one_byte_over_the_limit_is_malformed(codec: int) -> None:
    for data in (b"ab", TEXT):
        with pytest.raises(Malformed):
            decompress(codec, compress(codec, data), len(data) - 1)


@pytest.mark.parametrize("codec", PACKED, ids=lambda codec: CODEC_NAMES[codec])
def test_data_that_is_cut_short_is_malformed(codec: int) -> None:
    packed = compress(codec, TEXT)
    for end in (1, 9, 17, len(packed) // 2, len(packed) - 1):
        with pytest.raises(Malformed):
            decompress(codec, packed[:end], 1 << 20)


def bomb(codec: int) -> bytes:
    zeros = bytes(256 << 20)
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(zeros))
    if codec == ZSTD:
        unsized = zstandard.ZstdCompressor(write_content_size=False)
        return unsized.compress(zeros)
    return compress(codec, zeros, 1 if codec == GZIP else None)


@pytest.mark.parametrize("codec", PACKED, ids=lambda codec: CODEC_NAMES[codec])
def test_cve_2023_34455_a_bomb_is_refused_without_the_memory(codec: int) -> None:
    packed = bomb(codec)
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            decompress(codec, packed, 8 << 20)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_snappy_is_read_in_both_framings() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(SNAPPY, raw, len(TEXT)) == TEXT
    framed = compress(SNAPPY, TEXT)
    assert framed[:16] == bytes.fromhex("82534e4150505900 00000001 00000001")
    assert decompress(SNAPPY, framed + framed, 2 * len(TEXT)) == TEXT + TEXT


def test_snappy_chunks_hold_32_kib_each() -> None:
    framed = compress(SNAPPY, bytes(100_000))
    at, sizes = 16, []
    while at < len(framed):
        size = int.from_bytes(framed[at : at + 4], "big")
        sizes.append(cramjam.snappy.decompress_raw_len(framed[at + 4 : at + 4 + size]))
        at += 4 + size
    assert sizes == [32_768, 32_768, 32_768, 1_696]


def test_a_snappy_block_that_announces_the_impossible_is_refused() -> None:
    with pytest.raises(Malformed, match="announces"):
        decompress(SNAPPY, b"\xff\xff\xff\x7f\x00abc", 1 << 30)


def test_lz4_blocks_are_independent_and_small() -> None:
    packed = compress(LZ4, TEXT)
    info = lz4.frame.get_frame_info(packed)
    assert (info["block_linked"], info["block_size"], info["content_size"]) == (False, 65_536, 0)
    assert not info["content_checksum"]


def test_other_writers_are_understood() -> None:
    assert decompress(GZIP, gzip.compress(TEXT) + gzip.compress(b"more"), 1 << 20) == TEXT + b"more"
    assert decompress(LZ4, lz4.frame.compress(TEXT, content_checksum=True, block_checksum=True), 1 << 20) == TEXT
    streamed = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(TEXT)
    assert decompress(ZSTD, streamed, len(TEXT)) == TEXT
    assert decompress(ZSTD, streamed + streamed, 2 * len(TEXT)) == TEXT + TEXT
    with pytest.raises(Malformed):
        decompress(ZSTD, streamed + streamed, 2 * len(TEXT) - 1)


def test_other_readers_understand_us() -> None:
    assert gzip.decompress(compress(GZIP, TEXT)) == TEXT
    assert bytes(snappy_decode(compress(SNAPPY, TEXT))) == TEXT
    assert lz4_decode(compress(LZ4, TEXT)) == TEXT


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(GZIP, (1, 9, -1)), (LZ4, (1, 2, 9, 12, 17)), (ZSTD, (-5, 1, 22))],
    ids=["gzip", "lz4", "zstd"],
)
def test_every_level_that_kafka_allows_works(codec: int, levels: tuple[int, ...]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level), len(TEXT)) == TEXT


def test_an_unknown_codec_is_malformed() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(Malformed):
            decompress(codec, b"", 10)


def test_no_codec_library_is_loaded_before_it_is_needed() -> None:
    seen = "import sys, penstock.protocol.batch; print({'zstandard', 'lz4', 'cramjam'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True).stdout == "set()\n"
