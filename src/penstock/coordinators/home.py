"""Which partition of a coordinator's topic is home to a key: the id of a group, or of a transactional producer."""

from __future__ import annotations

from array import array


def java_hash(text: str) -> int:
    """The hash that Java gives a string: over its UTF-16 units, as a signed 32-bit number."""
    hashed = 0
    units = array("H", text.encode("utf-16-le", "surrogatepass"))
    for unit in units:
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >> 31 else hashed


def home_partition(key: str, partitions: int) -> int:
    """The partition whose leader coordinates `key` when the topic has `partitions`."""
    hashed = java_hash(key)
    # The one number without a positive twin in Java counts as zero.
    return 0 if hashed == -(1 << 31) else abs(hashed) % partitions
