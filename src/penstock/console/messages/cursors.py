"""Where a page ended, as text that a browser gives back: the next offset of each partition. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

import msgspec

from penstock.console.digits import INT32_MAX, whole
from penstock.console.failures import Declined, bad_request

PARTITIONS_MAX: Final = 100_000
_READ: Final = msgspec.json.Decoder(dict[str, int])


def cursor_text(positions: Mapping[int, int]) -> str:
    data = msgspec.json.encode({str(partition): offset for partition, offset in sorted(positions.items())})
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def cursor_positions(text: str) -> dict[int, int]:
    """What a cursor says. It comes from outside: it may name anything, and gives no right to it."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        told = _READ.decode(data)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise _none_of_ours() from None
    found = {whole(name, INT32_MAX): whole(offset) for name, offset in told.items()}
    positions = {
        partition: offset for partition, offset in found.items() if partition is not None and offset is not None
    }
    if len(positions) < len(told) or len(positions) > PARTITIONS_MAX:
        raise _none_of_ours()
    return positions


def _none_of_ours() -> Declined:
    return bad_request("cursor: this is none that the console gave")
