"""Compressed files in pieces: whole, cut off, broken."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from penstock.agent.inputs.files.inflating import GZIP, PLAIN, ZSTD, Broken, CutOff, inflate, packing_of, skip

CONTENT = b"".join(b"line %d\n" % number for number in range(50_000))


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


PACKERS = pytest.mark.parametrize(("packing", "pack"), [(GZIP, gzip.compress), (ZSTD, zstd)])


def inflated(path: Path, packing: str, piece: int = 10_000) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        stream = inflate(descriptor, packing)
        return b"".join(iter(lambda: stream.read(piece), b""))
    finally:
        os.close(descriptor)


@PACKERS
def test_members_and_frames_follow_each_other(tmp_path: Path, packing: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "log"
    path.write_bytes(pack(CONTENT) + pack(b"") + pack(b"more\n"))
    assert packing_of(path.read_bytes()[:4]) == packing
    assert inflated(path, packing) == CONTENT + b"more\n"


@PACKERS
def test_pieces_are_never_larger_than_asked_for(tmp_path: Path, packing: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(pack(bytes(50 << 20)))
    descriptor = os.open(path, os.O_RDONLY)
    stream = inflate(descriptor, packing)
    assert max(len(stream.read(5000)) for _ in range(100)) <= 5000
    os.close(descriptor)


@PACKERS
def test_a_file_that_is_cut_off_anywhere_says_so(tmp_path: Path, packing: str, pack: Callable[[bytes], bytes]) -> None:
    whole = pack(CONTENT[:20_000]) + pack(CONTENT[:500])
    second = len(pack(CONTENT[:20_000]))
    path = tmp_path / "log"
    for length in [*range(1, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        if length == second:
            continue
        with pytest.raises(CutOff):
            inflated(path, packing)


@PACKERS
def test_broken_bytes_are_broken(tmp_path: Path, packing: str, pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(pack(CONTENT))
    packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "log"
    path.write_bytes(packed)
    with pytest.raises(Broken):
        inflated(path, packing)


@PACKERS
def test_skipping_gives_what_stands_before_the_position(
    tmp_path: Path, packing: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "log"
    path.write_bytes(pack(CONTENT))
    descriptor = os.open(path, os.O_RDONLY)
    stream = inflate(descriptor, packing)
    assert skip(stream, 300_000, 256) == CONTENT[300_000 - 256 : 300_000]
    assert stream.read(10) == CONTENT[300_000:300_010]
    assert skip(inflate(descriptor, packing), len(CONTENT) + 1, 256) == b""
    os.close(descriptor)


def test_plain_text_is_plain() -> None:
    assert packing_of(b"hell") == PLAIN
    assert packing_of(b"") == PLAIN
