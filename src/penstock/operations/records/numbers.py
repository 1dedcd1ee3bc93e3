"""How a number is written and read back: digits, hex of a width, bytes of an order, one byte, a truth."""

from __future__ import annotations

import re

STYLES = {
    "ascii": 0, "number": 0, "hex": 0, "bool": 0,
    "hex64": 16, "hex32": 8, "hex16": 4, "hex8": 2, "hex4": 1,
    "big64": 8, "big32": 4, "big16": 2, "big8": 1,
    "little64": 8, "little32": 4, "little16": 2, "little8": 1,
    "byte": 1,
}  # fmt: skip
"""The width of each style, in characters or bytes; 0 where it depends on the number."""

DIGITS = re.compile(rb"-?\d+")


def write_number(number: int, style: str) -> bytes:
    """Numbers that are too large for the style lose their upper part."""
    width = STYLES[style]
    if style.startswith("big") or style == "byte":
        return (number & ((1 << 8 * width) - 1)).to_bytes(width, "big")
    if style.startswith("little"):
        return (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    if style == "hex":
        return b"%x" % (number & 0xFFFF_FFFF_FFFF_FFFF)
    if style.startswith("hex"):
        return b"%0*x" % (width, number & ((1 << 4 * width) - 1))
    if style == "bool":
        return b"true" if number else b"false"
    return b"%d" % number


def read_fixed(data: bytes, style: str) -> int:
    """The number in bytes of exactly the width of the style; ValueError when they are none.

    Eight bytes are signed, so that -1 survives; shorter ones are not, because they hold sizes.
    """
    if style.startswith("hex"):
        return int(data, 16)
    order = "little" if style.startswith("little") else "big"
    return int.from_bytes(data, "little" if order == "little" else "big", signed=len(data) == 8)
