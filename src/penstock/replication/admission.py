"""Decides whether a client's batch may enter a partition, and what must be done to it first.

One kernel call reads the header, sums the batch and walks records that are not compressed; the rest is comparing
numbers. The answers are Kafka's, in Kafka's order: what the request may hold, then size and checksum, then what the
header claims, then the records.

Compressed batches stay closed unless somebody must know what is in them: the topic compacts (keys), has a codec of its
own, or bounds how old a timestamp may be. This is less than Kafka does, which opens every batch. So a closed batch is
believed when its header says how many records it has, what their largest timestamp is, and that they unpack at all. A
largest timestamp that looks too late opens the batch: then the records decide.

Two more differences, both stricter: a batch that claims LogAppendTime is refused for every topic, and one that is not
compressed and whose offsets do not count up from 0 is refused, where Kafka would store offsets that it did not assign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kernels import (
    HEADER_BYTES,
    BadBytes,
    BadCrc,
    BadRecord,
    BatchHeader,
    RecordFacts,
    RecordSpan,
    check_batch,
    index_records,
    read_header,
    retime,
    splice_records,
    walk_records,
)
from penstock.model.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    INVALID_TXN_STATE,
    MESSAGE_TOO_LARGE,
    UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode,
    Refused,
)
from penstock.protocol.batch import (
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    payload_of,
    rebuild_batch,
)
from penstock.protocol.compression import CODECS, ZSTD
from penstock.protocol.wire import Buffer, Malformed

if TYPE_CHECKING:
    from penstock.kernels import PlainBatch
    from penstock.model.config import TopicSettings
    from penstock.model.ids import Millis

_ZSTD_SINCE: Final = 7
_FEWEST_BYTES_AFTER_LENGTH: Final = 14  # of the oldest format; below it Kafka calls a batch corrupt
_NO_BOUND_MS: Final = (1 << 63) - 1
_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1
_CODEC_FIXED: Final = {**CODECS, "uncompressed": CODECS["none"]}
# A batch may unpack to this much more than the largest batch that the topic takes, and to the floor in any case.
_UNPACKED_RATIO_MAX: Final = 64
_UNPACKED_FLOOR_BYTES: Final = 64 << 20
# Opening a larger compressed batch takes longer than one callback should hold the loop.
_OPENED_AT_ONCE_BYTES: Final = 128 << 10


class RefusedRecords(Refused):
    """A batch refused for some of its records; `record_errors` names each by its index."""

    def __init__(self, error: ErrorCode, why: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(error, why)
        self.record_errors = record_errors


class Admitted:
    """A batch that may be appended. `batch` is writable and holds exactly the bytes that `header` describes.

    With `needs_rebuild` it must go through `rebuild` first, which may still refuse it and should not run on the loop.
    """

    __slots__ = ("batch", "header", "needs_rebuild")

    def __init__(self, batch: memoryview | bytearray, header: BatchHeader, needs_rebuild: bool = False) -> None:
        self.batch, self.header, self.needs_rebuild = batch, header, needs_rebuild


def admit(
    batch: Buffer | None,
    *,
    settings: TopicSettings,
    now: Millis,
    api_version: int,
    transactions_served: bool = False,
) -> Admitted:
    """Lets in the one batch that a Produce request holds for a partition. Refused says why it may not enter."""
    view = memoryview(batch if batch is not None else b"")
    try:
        header, facts = check_batch(view, 0)
    except BadBytes as broken:
        raise _refusal(view, broken, settings, api_version) from broken
    _check_request(view, header, settings, api_version)
    _check_claims(header, transactions_served)
    if len(view) != header.size:
        view = view[: header.size]
    if view.readonly:
        view = memoryview(bytearray(view))
    source = header.attributes & CODEC_MASK
    target = _target_codec(settings, source)
    if facts is None:
        if source != target or (_must_open(header, settings, now) and header.size > _OPENED_AT_ONCE_BYTES):
            return Admitted(view, header, needs_rebuild=True)
        if _must_open(header, settings, now):
            return rebuild(Admitted(view, header), settings, now)
        return _timed(view, header, header.max_timestamp, settings, now)
    latest = _check_records(view, HEADER_BYTES, header, facts, settings, now)
    if not facts.dense:
        raise Refused(INVALID_RECORD, "the offsets of the records do not count up from 0")
    if source != target:
        return Admitted(view, header, needs_rebuild=True)
    return _timed(view, header, latest, settings, now)


def takes_as_it_is(settings: TopicSettings, batch: PlainBatch, now: Millis) -> bool:
    """Whether `admit` would let in a batch that the kernel found to be plain, and change nothing in it.

    This is what the short way of a produce may skip: the kernel has seen to all that does not depend on the topic. When
    in doubt the answer is no, and `admit` looks for itself.
    """
    _, _, header, earliest, keyless = batch
    if (
        header.size > settings.max_message_bytes
        or header.max_timestamp - now > settings.message_timestamp_after_max_ms
        or settings.compression_type != "producer"
        or settings.message_timestamp_type != "CreateTime"
    ):
        return False
    if keyless < 0:  # compressed: nobody has looked at its records
        return not _must_open(header, settings, now)
    if keyless and settings.compacts:
        return False
    return now - earliest <= settings.message_timestamp_before_max_ms


def rebuild(admitted: Admitted, settings: TopicSettings, now: Millis) -> Admitted:
    """Opens an admitted batch, checks its records, and packs them anew where codec or offsets ask for it.

    Pure, and slow for large batches. Refused when the records may not enter after all.
    """
    header = admitted.header
    limit = max(_UNPACKED_FLOOR_BYTES, settings.max_message_bytes * _UNPACKED_RATIO_MAX)
    try:
        payload = payload_of(admitted.batch, header, limit)
        facts = walk_records(payload, header.record_count)
    except (Malformed, BadRecord) as broken:
        raise Refused(INVALID_RECORD, str(broken)) from broken
    latest = _check_records(payload, 0, header, facts, settings, now)
    source = header.attributes & CODEC_MASK
    target = _target_codec(settings, source)
    if source == target and facts.dense:
        return _timed(memoryview(admitted.batch), header, latest, settings, now)
    if not facts.dense:
        payload = _renumbered(payload, header.record_count)
    append_time = settings.message_timestamp_type == "LogAppendTime"
    batch = rebuild_batch(
        header,
        payload,
        codec=target,
        level=_level(settings, target),
        attributes=header.attributes | LOG_APPEND_TIME if append_time else header.attributes,
        max_timestamp=now if append_time else latest,
    )
    if len(batch) > settings.max_message_bytes:
        raise _too_large(len(batch), settings)
    return Admitted(batch, read_header(batch))


def _target_codec(settings: TopicSettings, source: int) -> int:
    name = settings.compression_type
    return source if name == "producer" else _CODEC_FIXED[name]


def _level(settings: TopicSettings, codec: int) -> int | None:
    """A topic's level belongs to the codec that it asks for; what only keeps the producer's codec takes its default."""
    name = settings.compression_type
    if name == "gzip":
        return settings.compression_gzip_level
    if name == "lz4":
        return settings.compression_lz4_level
    if name == "zstd":
        return settings.compression_zstd_level
    assert name == "producer" or codec in (CODECS["none"], CODECS["snappy"]), "every other codec has a level"
    return None


def _must_open(header: BatchHeader, settings: TopicSettings, now: Millis) -> bool:
    """Whether a compressed batch has to be opened although it would be stored as it is."""
    if settings.compacts:
        return True
    if settings.message_timestamp_type == "LogAppendTime":
        return False
    return (
        settings.message_timestamp_before_max_ms < _NO_BOUND_MS
        or header.max_timestamp - now > settings.message_timestamp_after_max_ms
    )


def _timed(batch: memoryview, header: BatchHeader, latest: int, settings: TopicSettings, now: Millis) -> Admitted:
    """Admitted with the timestamps that the topic wants in the header: its own time, or the largest of the records."""
    attributes = header.attributes
    if settings.message_timestamp_type == "LogAppendTime":
        attributes, latest = attributes | LOG_APPEND_TIME, now
    elif latest == header.max_timestamp:
        return Admitted(batch, header)
    crc = retime(batch, 0, header.size, attributes, latest)
    return Admitted(batch, header._replace(attributes=attributes, max_timestamp=latest, crc=crc))


def _renumbered(payload: Buffer, count: int) -> bytearray:
    """The same records with offsets that count up from 0; some old clients do not manage that inside a codec."""
    spans = index_records(payload, count)
    return splice_records(
        payload, [(span.rest, span.end, index, span.timestamp_delta) for index, span in enumerate(spans)]
    )


# --- what may be wrong, in the order in which Kafka looks ---


def _check_request(view: memoryview, header: BatchHeader, settings: TopicSettings, api_version: int) -> None:
    """What a request may hold at all. Comes before the checksum in Kafka's order."""
    codec = header.attributes & CODEC_MASK
    if codec > ZSTD:
        raise Refused(UNSUPPORTED_COMPRESSION_TYPE, f"compression codec {codec} does not exist")
    if codec == ZSTD and api_version < _ZSTD_SINCE:
        raise Refused(UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce {_ZSTD_SINCE} or later, not {api_version}")
    if len(view) != header.size:
        _check_rest(view[header.size :])
    if header.base_offset != 0:
        raise Refused(INVALID_RECORD, f"the base offset of a produced batch is 0, not {header.base_offset}")
    if header.size > settings.max_message_bytes:
        raise _too_large(header.size, settings)


def _check_rest(rest: memoryview) -> None:
    """Bytes after the first batch are ignored as long as they do not make up another one."""
    if len(rest) < 12:
        return
    length = int.from_bytes(rest[8:12], "big", signed=True)
    if length < _FEWEST_BYTES_AFTER_LENGTH or (len(rest) > 16 and rest[16] > 2):
        raise Refused(CORRUPT_MESSAGE, "what follows the batch is not a batch")
    if len(rest) > 16 and len(rest) >= length + 12:
        raise Refused(INVALID_RECORD, "a produce holds exactly one batch for each partition")


def _check_claims(header: BatchHeader, transactions_served: bool) -> None:
    """What a header may claim when it comes from a client."""
    count = header.record_count
    if count <= 0 or header.last_offset_delta + 1 != count:
        raise Refused(
            INVALID_RECORD, f"the batch claims {count} records and {header.last_offset_delta} as its last offset delta"
        )
    attributes = header.attributes
    if attributes & CONTROL:
        raise Refused(INVALID_RECORD, "clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise Refused(
            INVALID_RECORD, f"producer {header.producer_id} sent the sequence number {header.base_sequence}, below 0"
        )
    if attributes & TRANSACTIONAL and not transactions_served:
        raise Refused(INVALID_TXN_STATE, "transactions are not served here")
    if attributes & LOG_APPEND_TIME:
        why = "a producer may not set the timestamp type LogAppendTime"
        raise RefusedRecords(INVALID_TIMESTAMP, why, [(0, why)])


def _check_records(
    opened: Buffer, at: int, header: BatchHeader, facts: RecordFacts, settings: TopicSettings, now: Millis
) -> int:
    """The largest timestamp, when every record may enter. RefusedRecords names those that may not.

    The records lie in `opened` from `at` on; they are looked at one by one only when something is wrong.
    """
    base = header.base_timestamp
    earliest, latest = base + facts.min_timestamp_delta, base + facts.max_timestamp_delta
    if settings.message_timestamp_type == "LogAppendTime":
        first, last = _INT64_MIN, _INT64_MAX
    else:
        first = now - settings.message_timestamp_before_max_ms
        last = now + settings.message_timestamp_after_max_ms
        if last > _INT64_MAX:
            last = _INT64_MAX  # the field holds no more, even where the topic sets no bound
    if earliest < first or latest > last or (facts.null_keys and settings.compacts):
        spans = index_records(memoryview(opened)[at:], header.record_count)
        _refuse_some(spans, base, first, last, settings.compacts)
    return latest if latest > NO_TIMESTAMP else NO_TIMESTAMP


def _refuse_some(spans: list[RecordSpan], base_timestamp: int, first: int, last: int, keys_required: bool) -> None:
    """Raises for the records that are at fault; a record with no timestamp (-1) is never too early or too late."""
    errors: list[tuple[int, str]] = []
    error = INVALID_RECORD
    for index, span in enumerate(spans):
        timestamp = base_timestamp + span.timestamp_delta
        if keys_required and span.key is None:
            errors.append((index, "a compacted topic takes no record without a key"))
        elif not first <= timestamp <= last and timestamp != NO_TIMESTAMP:
            errors.append((index, f"timestamp {timestamp} is not within [{first}, {last}]"))
            error = INVALID_TIMESTAMP
    if not errors:
        return
    if error is INVALID_TIMESTAMP:
        raise RefusedRecords(error, "one or more records have a timestamp out of range", errors)
    raise RefusedRecords(error, f"{len(errors)} records have no key, which a compacted topic needs", errors)


def _too_large(size: int, settings: TopicSettings) -> Refused:
    return Refused(MESSAGE_TOO_LARGE, f"a batch of {size} bytes exceeds max.message.bytes={settings.max_message_bytes}")


def _refusal(view: memoryview, broken: BadBytes, settings: TopicSettings, api_version: int) -> Refused:
    """The code for bytes that a kernel refused; earlier checks of Kafka's order go first."""
    whole = isinstance(broken, BadCrc | BadRecord)
    if not whole:
        return _no_batch(view, broken)
    header = read_header(view)
    _check_request(view, header, settings, api_version)
    if isinstance(broken, BadCrc):
        return Refused(CORRUPT_MESSAGE, str(broken))
    _check_claims(header, transactions_served=True)
    return Refused(INVALID_RECORD, str(broken))


def _no_batch(view: memoryview, broken: BadBytes) -> Refused:
    if len(view) < 12:
        return Refused(INVALID_RECORD, "a produce holds one batch for each partition; this one is empty")
    length = int.from_bytes(view[8:12], "big", signed=True)
    if length < _FEWEST_BYTES_AFTER_LENGTH:
        return Refused(CORRUPT_MESSAGE, f"{length} bytes are too few for a batch")
    if len(view) < 17:
        return Refused(INVALID_RECORD, "the batch is cut short")
    magic = view[16]
    if magic > 2:
        return Refused(CORRUPT_MESSAGE, f"there is no batch format {magic}")
    if len(view) < length + 12:
        return Refused(INVALID_RECORD, "the batch is cut short")
    if magic < 2:
        return Refused(INVALID_RECORD, f"batch format {magic} is too old; produce with format 2")
    return Refused(CORRUPT_MESSAGE, str(broken))
