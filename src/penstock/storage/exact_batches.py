"""Batches whose offsets and epochs were assigned elsewhere: what must hold before a log takes them as they are."""

from __future__ import annotations

from penstock.kernels import BadBatch, BatchHeader, crc_holds, scan_batches
from penstock.model.errors import CORRUPT_MESSAGE, Refused


def check_exact(view: memoryview, log_end: int, *, verify: bool) -> list[tuple[int, BatchHeader]]:
    """(position, header) of each batch. CORRUPT_MESSAGE unless they are whole and follow `log_end`, gaps allowed.

    With `verify` checksums are looked at too.
    """
    try:
        batches = scan_batches(view)
    except BadBatch as broken:
        raise Refused(CORRUPT_MESSAGE, str(broken)) from broken
    expected = log_end
    for position, header in batches:
        if header.base_offset < expected or header.last_offset_delta < 0:
            raise Refused(CORRUPT_MESSAGE, f"a batch at offset {header.base_offset}; the log ends at {expected}")
        if verify and not crc_holds(view, position, header.size):
            raise Refused(CORRUPT_MESSAGE, f"the checksum of the batch at offset {header.base_offset} does not hold")
        expected = header.last_offset + 1
    if not batches or batches[-1][0] + batches[-1][1].size != len(view):
        raise Refused(CORRUPT_MESSAGE, "the bytes do not end with a whole batch")
    return batches
