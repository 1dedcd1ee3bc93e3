"""Bombs, lies and ends that are missing: what strangers pack is undone within bounds, and in one place."""

from __future__ import annotations

import contextlib
import gzip
import re
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

import penstock
from penstock.model.inflating import (
    MEMBERS_MAX,
    CutShort,
    GzipStream,
    NotInflatable,
    TooLarge,
    inflate_gzip,
    inflate_lz4,
    inflate_snappy,
    inflate_zlib,
    inflate_zstd,
    zstd_frame,
)
from tests.patience import within
from tests.properties import examples

SOURCE = Path(penstock.__file__).parent
Inflate = Callable[[bytes, int], bytes]


def unsized(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


WAYS: dict[str, tuple[Inflate, Callable[[bytes], bytes]]] = {
    "gzip": (inflate_gzip, lambda data: gzip.compress(data, 1)),
    "deflate": (inflate_zlib, lambda data: zlib.compress(data, 1)),
    "snappy": (inflate_snappy, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4": (inflate_lz4, lz4.frame.compress),
    "zstd": (inflate_zstd, zstandard.compress),
    "zstd without its size": (inflate_zstd, unsized),
}
every_way = pytest.mark.parametrize(("inflate", "pack"), WAYS.values(), ids=WAYS)


@every_way
def test_a_bomb_is_refused_without_the_memory(inflate: Inflate, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(bytes(256 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            inflate(packed, 8 << 20)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


@every_way
def test_the_bound_itself_is_allowed_and_one_byte_more_is_not(inflate: Inflate, pack: Callable[[bytes], bytes]) -> None:
    for data in (b"", b"a", bytes(300_000)):
        assert inflate(pack(data), len(data)) == data
        if data:
            with pytest.raises(TooLarge):
                inflate(pack(data), len(data) - 1)


@every_way
def test_an_end_that_is_missing_is_told(inflate: Inflate, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(b"".join(b"line %d " % number for number in range(2_000)))
    for end in (len(packed) // 2, len(packed) - 1):
        with pytest.raises(NotInflatable):
            inflate(packed[:end], 1 << 20)


@settings(max_examples=examples(100))
@example(way="zstd", noise=b"\0\0\0\0\0\0\0\0\0\x01\0\0", bytes_max=0)
@given(st.sampled_from(sorted(WAYS)), st.binary(max_size=200), st.integers(0, 300))
def test_noise_is_inflated_or_refused(way: str, noise: bytes, bytes_max: int) -> None:
    with contextlib.suppress(NotInflatable, TooLarge):
        assert len(WAYS[way][0](noise, bytes_max)) <= bytes_max


@pytest.mark.parametrize(("inflate", "pack"), [WAYS["gzip"], WAYS["zstd"]], ids=["gzip", "zstd"])
def test_members_follow_each_other_and_share_one_bound(inflate: Inflate, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(b"abc") * MEMBERS_MAX
    assert inflate(packed, 3 * MEMBERS_MAX) == b"abc" * MEMBERS_MAX
    with pytest.raises(TooLarge):
        inflate(packed, 3 * MEMBERS_MAX - 1)


@pytest.mark.parametrize(("inflate", "pack"), [WAYS["gzip"], WAYS["zstd"]], ids=["gzip", "zstd"])
def test_nothing_but_members_does_not_cost_its_square(inflate: Inflate, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(b"") * 400_000
    begun = time.monotonic()
    with pytest.raises(NotInflatable, match="follow each other"):
        inflate(packed, 1 << 20)
    assert time.monotonic() - begun < within(5)


def test_zeros_may_follow_a_member_where_that_is_allowed() -> None:
    packed = gzip.compress(b"abc")
    assert inflate_gzip(packed + bytes(9), 3, padded=True) == b"abc"
    for more, padded in ((bytes(9), False), (b"\0x", True), (b"x", False)):
        with pytest.raises(NotInflatable):
            inflate_gzip(packed + more, 3, padded=padded)


def test_a_frame_that_announces_more_than_it_can_hold_is_refused_before_memory_is_asked_for() -> None:
    packed = bytearray(zstandard.ZstdCompressor(level=1).compress(bytes(300_000)))
    at = bytes(packed).index((300_000).to_bytes(4, "little"))
    packed[at : at + 4] = (1 << 31).to_bytes(4, "little")
    tracemalloc.start()
    try:
        with pytest.raises(NotInflatable, match="announces"):
            inflate_zstd(packed, 1 << 32)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_frames_of_other_people_s_data_are_passed_over() -> None:
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"theirs"[:5]
    assert inflate_zstd(skippable + zstandard.compress(b"ours") + skippable, 4) == b"ours"
    assert inflate_zstd(skippable, 0) == b""
    with pytest.raises(CutShort):
        inflate_zstd(skippable[:-1], 4)


def unsized_with(params: zstandard.ZstdCompressionParameters, data: bytes) -> bytes:
    packer = zstandard.ZstdCompressor(compression_params=params).compressobj()
    return packer.compress(data) + packer.flush()


def test_a_window_that_is_too_wide_is_refused() -> None:
    wide = zstandard.ZstdCompressionParameters(window_log=24)
    packed = unsized_with(wide, bytes(40_000_000))
    assert len(inflate_zstd(packed, 40_000_000)) == 40_000_000
    with pytest.raises(NotInflatable):
        inflate_zstd(packed, 40_000_000, window_bytes_max=8 << 20)


def test_a_frame_says_where_it_ends_before_it_is_unpacked() -> None:
    first, second = unsized(bytes(1_000_000)), zstandard.ZstdCompressor(write_checksum=True).compress(b"abc")
    packed = first + second

    def peek(at: int, length: int) -> bytes:
        return packed[at : at + length]

    assert zstd_frame(peek, 0, len(packed)).end == len(first)
    assert zstd_frame(peek, len(first), len(packed)).end == len(packed)
    for size in (len(first) - 1, 3):
        packed = first[:size]
        with pytest.raises(NotInflatable):
            zstd_frame(peek, 0, size)


def test_a_stream_gives_a_bomb_in_pieces() -> None:
    packed = [gzip.compress(bytes(64 << 20), 1)]
    tracemalloc.start()
    try:
        stream = GzipStream(lambda: packed.pop() if packed else b"")
        sizes = []
        while piece := stream.read(1 << 20):
            sizes.append(len(piece))
        assert sum(sizes) == 64 << 20
        assert max(sizes) == 1 << 20
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_no_other_module_inflates() -> None:
    ways = re.compile(r"decompressobj|LZ4FrameDecompressor|decompress_raw|ZstdDecompressor|gzip\.(open|decompress)")
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if ways.search(path.read_text(encoding="utf-8"))
    }
    # Files are read by a stream of the library over their descriptor; the demo writes what it opens.
    assert found == {"model/inflating.py", "agent/inputs/files/inflating.py", "demo/rotating.py"}
