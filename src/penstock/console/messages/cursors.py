"""Where a page ended, as text that a browser gives back: the next offset of each partition. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

import msgspec

from penstock.console.failures import bad_request

OFFSET_MAX: Final = (1 << 63) - 1
PARTITIONS_MAX: Final = 100_000
_READ: Final = msgspec.json.Decoder(dict[str, int])


def cursor_text(positions: Mapping[int, int]) -> str:
    data = msgspec.json.encode({str(partition): offset for partition, offset in sorted(positions.items())})
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def cursor_positions(text: str) -> dict[int, int]:
    """What a cursor says. It comes from outside: it may name anything, and gives no right to it."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = {int(partition): offset for partition, offset in _READ.decode(data).items()}
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise bad_request("cursor: this is none that the console gave") from None
    wrong = len(found) > PARTITIONS_MAX or any(
        partition < 0 or not 0 <= offset <= OFFSET_MAX for partition, offset in found.items()
    )
    if wrong:
        raise bad_request("cursor: this is none that the console gave")
    return found
