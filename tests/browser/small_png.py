"""A screenshot in a third of its bytes: 256 of its colours, and the nearest of them for the rest."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

COLOURS: Final = 256
_MAGIC: Final = b"\x89PNG\r\n\x1a\n"
_RGB: Final = (8, 2)
Bytes = npt.NDArray[np.uint8]


def small(png: bytes) -> bytes:
    """`png` has eight bits of red, green and blue a pixel, as browsers write it."""
    drawn = pixels(png)
    height, width = drawn.shape[:2]
    whole = drawn.astype(np.uint32)
    codes = (whole[..., 0] << 16 | whole[..., 1] << 8 | whole[..., 2]).ravel()
    colours, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    chosen, nearest_of = _chosen(_split(colours), counts)
    palette = colours[chosen]
    nearest = nearest_of[places].astype(np.uint8).reshape(height, width)
    rows = np.hstack([np.zeros((height, 1), np.uint8), nearest]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    table = _split(palette).astype(np.uint8).tobytes()
    parts = ((b"IHDR", header), (b"PLTE", table), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return _MAGIC + b"".join(_chunk(kind, data) for kind, data in parts)


def _split(codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    return np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1).astype(np.int32)


def _chosen(colours: npt.NDArray[np.int32], counts: npt.NDArray[np.intp]) -> tuple[list[int], npt.NDArray[np.intp]]:
    """The palette, and of each colour its place there. Next comes the one that is furthest from all of the palette, by
    how much of the picture has it: a word in orange counts, though there is little of it."""
    weights, chosen = np.sqrt(counts), [int(counts.argmax())]
    apart = _apart(colours, chosen[0])
    nearest = np.zeros(len(colours), np.intp)
    while len(chosen) < COLOURS and apart.any():
        chosen.append(int((weights * apart).argmax()))
        here = _apart(colours, chosen[-1])
        nearest[here < apart] = len(chosen) - 1
        apart = np.minimum(apart, here)
    return chosen, nearest


def _apart(colours: npt.NDArray[np.int32], one: int) -> npt.NDArray[np.int32]:
    gone = colours - colours[one]
    return (gone * gone).sum(axis=1)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    assert png.startswith(_MAGIC), "a PNG was expected"
    at = len(_MAGIC)
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += size + 12


def pixels(png: bytes) -> Bytes:
    """Height by width by three."""
    parts = list(chunks(png))
    width, height, *kind = struct.unpack_from(">IIBB", dict(parts)[b"IHDR"])
    assert tuple(kind) == _RGB, f"a picture of kind {kind}"
    data = zlib.decompress(b"".join(data for name, data in parts if name == b"IDAT"))
    lines = np.frombuffer(data, np.uint8).reshape(height, 1 + 3 * width)
    above = np.zeros(3 * width, np.uint8)
    found = []
    for line in lines:
        above = _unfiltered(int(line[0]), line[1:], above)
        found.append(above)
    return np.stack(found).reshape(height, width, 3)


def _unfiltered(kind: int, line: Bytes, above: Bytes) -> Bytes:
    """One line of pixels, by what the filter of PNG says of its left, upper and upper left neighbours."""
    if kind == 0:
        return line
    if kind == 1:
        return np.add.accumulate(line.reshape(-1, 3), axis=0, dtype=np.uint8).ravel()
    if kind == 2:
        return line + above
    made, upper = bytearray(3) + bytearray(line.tobytes()), bytes(3) + above.tobytes()
    for at in range(3, len(made)):
        left, up, corner = made[at - 3], upper[at], upper[at - 3]
        made[at] = made[at] + (left + up >> 1 if kind == 3 else _paeth(left, up, corner)) & 255
    return np.frombuffer(bytes(made[3:]), np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    by_left, by_up, by_corner = abs(guess - left), abs(guess - up), abs(guess - corner)
    if by_left <= by_up and by_left <= by_corner:
        return left
    return up if by_up <= by_corner else corner
