"""What limits are set on, what they are called, and which of them are valid. Kafka's words, as in `acls.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from penstock.metadata.image import QuotaEntity, quota_entity
from penstock.model.errors import INVALID_REQUEST, Refused
from penstock.security.hosts import host_text

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

_LONG_MAX: Final = (1 << 63) - 1
_INT_MAX: Final = (1 << 31) - 1

# What a key holds: the highest whole number, or None for any number above 0.
_OF_CLIENTS: Final[Mapping[str, tuple[int, str] | None]] = {
    PRODUCER_BYTE_RATE: (_LONG_MAX, "a LONG"),
    CONSUMER_BYTE_RATE: (_LONG_MAX, "a LONG"),
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_OF_ADDRESSES: Final[Mapping[str, tuple[int, str] | None]] = {CONNECTION_CREATION_RATE: (_INT_MAX, "an INT")}

_WHOLE_WITHIN: Final = 1e-6


def check_entity(parts: Sequence[tuple[str, str | None]]) -> QuotaEntity:
    """The entity that a request means, Refused with INVALID_REQUEST when limits cannot be set on it."""
    if not parts:
        raise Refused(INVALID_REQUEST, "Invalid empty client quota entity")
    seen: set[str] = set()
    for type, name in parts:
        if type in seen:
            raise Refused(INVALID_REQUEST, f"Invalid client quota entity, duplicate entity entry {type}")
        if type not in (USER, CLIENT_ID, IP):
            raise Refused(INVALID_REQUEST, f"Unhandled client quota entity type: {type}")
        if name == "":
            raise Refused(INVALID_REQUEST, f"Empty {type} not supported")
        seen.add(type)
    if IP in seen:
        _check_address(parts)
    return quota_entity(parts)


def _check_address(parts: Sequence[tuple[str, str | None]]) -> None:
    if len(parts) > 1:
        raise Refused(
            INVALID_REQUEST,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        )
    address = parts[0][1]
    try:
        if address is not None:
            host_text(address)
    except ValueError:
        # Kafka also takes a name that its controller can resolve; ours asks nobody, and addresses are what is counted.
        raise Refused(INVALID_REQUEST, f"{address} is not a valid IP or resolvable host.") from None


def check_limit(entity: QuotaEntity, key: str, value: float) -> None:
    """Refused with INVALID_REQUEST unless the entity may have this limit."""
    keys = _OF_ADDRESSES if entity[0][0] == IP else _OF_CLIENTS
    if key not in keys:
        raise Refused(INVALID_REQUEST, f"Invalid configuration key {key}")
    if not value > 0:
        raise Refused(INVALID_REQUEST, f"Quota {key} must be greater than 0")
    whole = keys[key]
    if whole is None:
        return
    highest, type = whole
    # Kafka compares as doubles: 2^63 itself is no larger than the highest LONG then.
    if value > float(highest):
        raise Refused(INVALID_REQUEST, f"Proposed value for {key} is too large for {type}.")
    if value % 1.0 > _WHOLE_WITHIN:
        raise Refused(INVALID_REQUEST, f"{key} cannot be a fractional value.")
