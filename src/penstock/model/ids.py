"""Names for numbers. A NewType costs nothing at run time and stops an epoch being passed as an offset."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple, NewType, Protocol

NodeId = NewType("NodeId", int)
Offset = NewType("Offset", int)
Epoch = NewType("Epoch", int)
Millis = NewType("Millis", int)

# Sixteen raw bytes. `uuid.UUID` costs a microsecond to make and we make one per topic per request.
Uuid = NewType("Uuid", bytes)

NO_NODE = NodeId(-1)
NO_EPOCH = Epoch(-1)
ZERO_UUID = Uuid(bytes(16))
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
AUDIT_TOPIC = "__penstock_audit"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC, AUDIT_TOPIC})
"""Topics that coordinators live in, and that of audit events; no client writes into them."""

# Directory ids with a meaning of their own; the first hundred ids are reserved.
DIRECTORY_MIGRATING = Uuid(bytes(16))
DIRECTORY_UNASSIGNED = Uuid(bytes(15) + b"\x01")
DIRECTORY_LOST = Uuid(bytes(15) + b"\x02")
RESERVED_UUIDS = 100


class TopicPartition(NamedTuple):
    """A partition as people name it. Inside the broker partitions are keyed by (topic id, partition)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class PartitionKey(NamedTuple):
    """A partition as the broker knows it: a re-created topic has another id, so old requests cannot reach it."""

    topic_id: Uuid
    partition: int


def uuid_text(value: bytes) -> str:
    """Kafka's spelling: 22 characters of base64url without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def uuid_parse(text: str) -> Uuid:
    """The inverse of `uuid_text`; ValueError when `text` is not a uuid in Kafka's spelling."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError) as broken:
        raise ValueError(f"{text!r} is not a base64url uuid") from broken
    if len(raw) != 16:
        raise ValueError(f"{text!r} decodes to {len(raw)} bytes; a uuid has 16")
    return Uuid(raw)


def usable_uuid(candidate: bytes) -> bool:
    """Whether random bytes may be used as an id: not reserved, and its text does not look like an option."""
    return int.from_bytes(candidate, "big") >= RESERVED_UUIDS and not uuid_text(candidate).startswith("-")


class Randomness(Protocol):
    """The part of `random.Random` that ids are drawn from; whoever makes one gives it its randomness."""

    def randbytes(self, n: int, /) -> bytes: ...

    def getrandbits(self, k: int, /) -> int: ...


def new_uuid(random: Randomness) -> Uuid:
    """A random id for something new: version 4, not reserved, and its text is no command line option."""
    while True:
        raw = bytearray(random.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        candidate = bytes(raw)
        if usable_uuid(candidate):
            return Uuid(candidate)


def new_hyphenated_uuid(random: Randomness) -> str:
    """A random id of version 4 in 32 digits and 4 hyphens, as classic members have at the end of theirs.

    The module `uuid` costs more to import than this whole one.
    """
    digits = f"{random.getrandbits(128):032x}"
    variant = "89ab"[random.getrandbits(2)]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
