"""What both twins take, give and raise. The tuples are made by the million, so they hold plain numbers and bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from penstock.model.errors import PenstockError

Buffer: TypeAlias = bytes | bytearray | memoryview

Payload: TypeAlias = bytes | bytearray | memoryview | str
"""What a user may give as key or value; text is written as UTF-8."""

HeaderPairs: TypeAlias = Sequence[tuple[str, Payload | None]]

PAIRS: Final = "a list of (name, value) pairs"

HEADER_BYTES: Final = 61
"""A batch of format 2 begins with this many bytes; its records, or their compressed blob, follow."""

CODEC_MASK: Final = 0x07


class BatchHeader(NamedTuple):
    """The header of a batch. `size` counts the whole batch, with the twelve bytes that its length field leaves out."""

    base_offset: int
    size: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK


class RecordFacts(NamedTuple):
    """What a walk over the records saw. With no records: zeros, index -1 and dense."""

    min_timestamp_delta: int
    max_timestamp_delta: int
    max_timestamp_index: int
    null_keys: int
    dense: bool


class Record(NamedTuple):
    """One record with its absolute offset and timestamp.

    Header keys are UTF-8; bytes that are not become lone surrogates, so that encoding gives the same bytes back.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def restored_record(*fields: Any) -> Any:
    """A pickled consumer record, in whichever twin serves where it is unpickled."""
    return import_module("penstock.kernels").ConsumerRecord(*fields)


def unsendable(topic: object, value: object, key: object, partition: object, timestamp: object, headers: Any) -> str:
    """Which argument of a `send` is of no use, and what it takes; "" when each of them is of some.

    For those who have failed already, or have time: sending itself looks at nothing twice.
    """
    if not isinstance(topic, str):
        return _expected("topic", "text", topic)
    for name, data in (("value", value), ("key", key)):
        if not _is_payload(data):
            return _expected(name, "bytes, text or None", data)
    for name, number in (("partition", partition), ("timestamp", timestamp)):
        if number is not None and not hasattr(number, "__index__"):
            return _expected(name, "a whole number or None", number)
    return _unsendable_headers(headers) if headers else ""


def _unsendable_headers(headers: Any) -> str:
    if isinstance(headers, Mapping | Iterator | str) or not hasattr(headers, "__iter__"):
        return _expected("headers", PAIRS, headers)
    for position, pair in enumerate(headers):
        where = f"headers[{position}]"
        try:
            name, data = pair
        except (TypeError, ValueError):
            return _expected(where, "a (name, value) pair", pair)
        if not isinstance(name, str):
            return _expected(where, "text for its name", name)
        if not _is_payload(data):
            return _expected(where, "bytes, text or None for its value", data)
    return ""


def _is_payload(data: Any) -> bool:
    if data is None or isinstance(data, str):
        return True
    try:
        memoryview(data)
    except TypeError:
        return False
    return True


def _expected(name: str, what: str, given: object) -> str:
    return f"{name}: expected {what}, got {type(given).__name__}"


PlainBatch: TypeAlias = tuple[int, int, BatchHeader, int, int]
"""One batch of a plain produce: partition, position in the frame, header, the smallest timestamp of its records, and
how many of them have no key. A compressed one is not opened: 0 and -1."""


class PlainProduce(Protocol):
    """A Produce request with nothing unusual in it, read and checked in one call."""

    @property
    def acks(self) -> int: ...
    @property
    def timeout_ms(self) -> int: ...
    @property
    def topics(self) -> list[tuple[Any, list[PlainBatch]]]:
        """By name, or by id from version 13 on, in the order of the request; none is without batches."""

    def reply(self, correlation_id: int, numbers: list[int]) -> bytes:
        """The whole frame of a reply without errors; `numbers` has base offset and log start of each batch.

        Topics and partitions are copied from the frame, in which nothing but stamps may have been written since.
        """


class RecordSpan(NamedTuple):
    """Where a record lies in its payload: `[rest, end)` is what follows its offset delta, key length first."""

    rest: int
    end: int
    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    has_value: bool


class BadBytes(PenstockError):
    """Bytes that are not what a batch is made of."""


class BadBatch(BadBytes):
    """The header is cut short, of another format, or names an impossible size."""


class BadCrc(BadBytes):
    """The batch is whole and its checksum is another one."""

    def __init__(self, stored: int, computed: int) -> None:
        super().__init__(f"the batch has CRC-32C {computed:08x} and claims {stored:08x}")
        self.stored, self.computed = stored, computed


class BadRecord(BadBytes):
    """Record `index` of a batch, or what follows the last one, does not parse."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(f"record {index}: {why}")
        self.index, self.why = index, why


# The reasons, by the number with which the walkers of both twins return.
FINE: Final = 0
LENGTH: Final = 1
TOO_LONG: Final = 2
TIMESTAMP: Final = 3
OFFSET: Final = 4
KEY_LENGTH: Final = 5
KEY: Final = 6
VALUE_LENGTH: Final = 7
VALUE: Final = 8
HEADER_COUNT: Final = 9
HEADER_KEY: Final = 10
HEADER_VALUE: Final = 11
LEFT_INSIDE: Final = 12
LEFT_AFTER: Final = 13
COUNT: Final = 14

REASONS: Final = (
    "",
    "its length is no varint or negative",
    "it is longer than the bytes that are left",
    "its timestamp delta is no varint",
    "its offset delta is no varint",
    "its key length is no varint or below -1",
    "its key runs past its end",
    "its value length is no varint or below -1",
    "its value runs past its end",
    "its header count is no varint or negative",
    "the key of a header is no varint length with that many bytes",
    "the value of a header is no varint length with that many bytes",
    "it has bytes left over after its last header",
    "bytes are left over after the last record",
    "the record count is negative",
)
