"""A follower's fetch and its answer, without the objects of the general codec: the same few fields, over and over.

Only version 17. What is written is byte for byte what the codec writes. Of answers the plain ones are read here, whose
partitions have no tags and no aborted transactions; all others go to the codec, which also judges what is malformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as struct_error
from typing import Any, Final, NamedTuple

from penstock.protocol.frame import decode_response
from penstock.protocol.primitives import read_uvarint, uvarint
from penstock.protocol.wire import Malformed

FETCH: Final = 1
VERSION: Final = 17

_QUESTION = Struct(">iiibii")
_PARTITION = Struct(">iiqiqix")
_END = Struct(">bbbbiqx")  # no rack, one tag, its number, its size, and in it the replica and its epoch
_INDEX = Struct(">i")
_ANSWER = Struct(">ibihi")  # correlation id, no tags, throttle time, error code, session id
_DATA = Struct(">ihqqqbi")  # up to the preferred replica, with an array of aborted transactions that takes one byte
_NO_RACK, _ONE_TAG, _STATE_TAG, _STATE_BYTES = 1, 1, 1, 13

Asked = tuple[int, int, int, int, int]
"""Partition, leader epoch, offset, last fetched epoch and log start."""


class Told(NamedTuple):
    """What an answer says of one partition. `diverging` is (epoch, end offset) where the logs went different ways."""

    topic_id: bytes
    partition: int
    error_code: int
    high_watermark: int
    log_start: int
    diverging: tuple[int, int] | None
    records: memoryview


class FetchAnswer(NamedTuple):
    """A leader's answer. `records_bytes` is what all its partitions brought."""

    error_code: int
    session_id: int
    told: Sequence[Told]
    records_bytes: int


def encode_fetch(
    *,
    wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    session_id: int,
    session_epoch: int,
    topics: Iterable[tuple[bytes, Sequence[Asked]]],
    partition_bytes_max: int,
    forgotten: Iterable[tuple[bytes, Sequence[int]]],
    replica: int,
    replica_epoch: int,
) -> bytearray:
    """The body of a request."""
    out = bytearray(_QUESTION.pack(wait_ms, min_bytes, max_bytes, 0, session_id, session_epoch))
    named = list(topics)
    out += uvarint(len(named) + 1)
    for topic_id, asked in named:
        out += topic_id
        out += uvarint(len(asked) + 1)
        for partition, leader_epoch, offset, last_epoch, log_start in asked:
            out += _PARTITION.pack(partition, leader_epoch, offset, last_epoch, log_start, partition_bytes_max)
        out.append(0)
    gone = list(forgotten)
    out += uvarint(len(gone) + 1)
    for topic_id, partitions in gone:
        out += topic_id
        out += uvarint(len(partitions) + 1)
        for partition in partitions:
            out += _INDEX.pack(partition)
        out.append(0)
    out += _END.pack(_NO_RACK, _ONE_TAG, _STATE_TAG, _STATE_BYTES, replica, replica_epoch)
    return out


def read_answer(frame: bytes | bytearray | memoryview) -> FetchAnswer:
    """The answer in a frame without its size. `Malformed` as the codec says it."""
    return _plain(frame) or answer_of(decode_response(frame, FETCH, VERSION)[1])


def answer_of(reply: Any) -> FetchAnswer:
    """A FetchResponse in the form that its follower takes in."""
    told = []
    size = 0
    for topic in reply.responses:
        for data in topic.partitions:
            records = memoryview(data.records or b"")
            size += len(records)
            ends = data.diverging_epoch
            told.append(
                Told(
                    topic.topic_id,
                    data.partition_index,
                    data.error_code,
                    data.high_watermark,
                    data.log_start_offset,
                    (ends.epoch, ends.end_offset) if ends.end_offset >= 0 else None,
                    records,
                )
            )
    return FetchAnswer(reply.error_code, reply.session_id, told, size)


def _plain(frame: bytes | bytearray | memoryview) -> FetchAnswer | None:
    """The answer, or None when it is not plain; whether it is well-formed is then for the codec to say."""
    try:
        _correlation_id, tags, _throttle_ms, error_code, session_id = _ANSWER.unpack_from(frame)
        if tags:
            return None
        view, told, records_bytes = memoryview(frame), [], 0
        topics, at = read_uvarint(view, _ANSWER.size)
        for _ in range(topics - 1):
            topic_id = bytes(view[at : at + 16])
            partitions, at = read_uvarint(view, at + 16)
            for _ in range(partitions - 1):
                index, error, high_watermark, _stable, log_start, aborted, _near = _DATA.unpack_from(view, at)
                size, at = read_uvarint(view, at + _DATA.size)
                end = at + max(0, size - 1)
                if aborted not in (0, 1) or view[end]:
                    return None
                told.append(Told(topic_id, index, error, high_watermark, log_start, None, view[at:end]))
                records_bytes += end - at
                at = end + 1
            if view[at]:
                return None
            at += 1
        if topics < 1 or view[at] or at + 1 != len(view):
            return None
    except (struct_error, IndexError, Malformed):
        return None
    return FetchAnswer(error_code, session_id, told, records_bytes)
