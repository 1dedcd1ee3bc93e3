"""A Fetch request and its answer without the objects of the general codec, for the broker's side.

Versions 9-18. A request is plain when it forgets no topics, names no rack and has no tags but the state of a replica;
of all others the codec reads every field and judges what is malformed. An answer is plain when no partition has an
error, an epoch to cut to, another replica to read from or aborted transactions. What is written is byte for byte what
the codec writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as struct_error
from typing import Any, Final, NamedTuple

from penstock.model.ids import Uuid
from penstock.protocol.primitives import read_uvarint, uvarint
from penstock.protocol.wire import Malformed

OLDEST: Final = 9
NEWEST: Final = 18

_RACK_SINCE: Final = 11
_FLEXIBLE_SINCE: Final = 12
_BY_ID_SINCE: Final = 13
_STATE_SINCE: Final = 15

_QUESTION = Struct(">iiibii")
_PARTITION = Struct(">iiqiqi")
_OLD_PARTITION = Struct(">iiqqi")
_INT32 = Struct(">i")
_INT16 = Struct(">h")
_REST = Struct(">bbb")  # nothing forgotten, no rack, so many tags
_STATE = Struct(">bbiqb")  # the number of the tag, its size, and in it the replica, its epoch and no tags
_STATE_TAG, _STATE_BYTES = 1, 13

_TOLD = Struct(">ihqqqbi")  # up to the preferred replica, with an array of aborted transactions that takes one byte
_OLD_TOLD = Struct(">ihqqqii")
_ELDER_TOLD = Struct(">ihqqqi")  # before there was a preferred replica
_ANSWER = Struct(">ihi")  # throttle time, error code, session id
_NOBODY = -1


class Wanted(NamedTuple):
    """A partition of a request; the names are those of the message."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int


class WantedTopic(NamedTuple):
    topic: str
    topic_id: Uuid
    partitions: Sequence[Wanted]


class ReplicaState(NamedTuple):
    replica_id: int = _NOBODY
    replica_epoch: int = -1


class PlainFetch(NamedTuple):
    """A plain request; the names are those of the message."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    replica_id: int
    replica_state: ReplicaState
    topics: Sequence[WantedTopic]
    forgotten_topics_data: Sequence[Any] = ()
    rack_id: str = ""


class Plain(NamedTuple):
    """What a plain answer says of one partition. `aborted` tells whether there is an empty list of transactions."""

    partition: int
    high_watermark: int
    last_stable: int
    log_start: int
    aborted: bool
    spans: Sequence[Any]
    size: int


_NO_ID: Final = Uuid(bytes(16))
_NO_STATE: Final = ReplicaState()


def read_plain_fetch(frame: bytes | bytearray, position: int, version: int) -> PlainFetch | None:
    """The request at `position`; None when it is not plain, and whether it is well-formed is for the codec to say."""
    if not OLDEST <= version <= NEWEST:
        return None
    replica, state = _NOBODY, _NO_STATE
    try:
        if version < _STATE_SINCE:
            (replica,) = _INT32.unpack_from(frame, position)
            position += 4
        wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = _QUESTION.unpack_from(frame, position)
        position += _QUESTION.size
        if version < _FLEXIBLE_SINCE:
            topics, position = _old_topics(frame, position)
            (forgotten,) = _INT32.unpack_from(frame, position)
            if forgotten or (version >= _RACK_SINCE and _INT16.unpack_from(frame, position + 4)[0]):
                return None
        else:
            found = _topics(frame, position, version)
            if found is None:
                return None
            topics, position = found
            forgotten, rack, tags = _REST.unpack_from(frame, position)
            if forgotten != 1 or rack != 1 or tags not in (0, 1):
                return None
            if tags:
                tag, size, node, epoch, more = _STATE.unpack_from(frame, position + _REST.size)
                if version < _STATE_SINCE or tag != _STATE_TAG or size != _STATE_BYTES or more:
                    return None
                state = ReplicaState(node, epoch)
    except (struct_error, IndexError, Malformed, UnicodeDecodeError):
        return None
    return PlainFetch(wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, replica, state, topics)


def _topics(frame: bytes | bytearray, at: int, version: int) -> tuple[list[WantedTopic], int] | None:
    topics = []
    make, unpack, size = Wanted._make, _PARTITION.unpack_from, _PARTITION.size
    count, at = read_uvarint(frame, at)
    if not count:
        return None
    for _ in range(count - 1):
        if version >= _BY_ID_SINCE:
            name, topic_id = "", Uuid(bytes(frame[at : at + 16]))
            at += 16
        else:
            length, at = read_uvarint(frame, at)
            if not 1 <= length <= 0x8000:
                return None
            name, topic_id = frame[at : at + length - 1].decode(), _NO_ID
            at += length - 1
        partitions, at = read_uvarint(frame, at)
        wanted = []
        for _ in range(partitions - 1):
            wanted.append(make(unpack(frame, at)))
            at += size
            if frame[at]:
                return None
            at += 1
        if not partitions or frame[at]:
            return None
        at += 1
        topics.append(WantedTopic(name, topic_id, wanted))
    return topics, at


def _old_topics(frame: bytes | bytearray, at: int) -> tuple[list[WantedTopic], int]:
    topics = []
    (count,) = _INT32.unpack_from(frame, at)
    at += 4
    for _ in range(_counted(count)):
        (length,) = _INT16.unpack_from(frame, at)
        at += 2 + _counted(length)
        name = frame[at - length : at].decode()
        (partitions,) = _INT32.unpack_from(frame, at)
        at += 4
        wanted = []
        for _ in range(_counted(partitions)):
            partition, epoch, offset, log_start, max_bytes = _OLD_PARTITION.unpack_from(frame, at)
            wanted.append(Wanted(partition, epoch, offset, -1, log_start, max_bytes))
            at += _OLD_PARTITION.size
        topics.append(WantedTopic(name, _NO_ID, wanted))
    return topics, at


def _counted(count: int) -> int:
    if count < 0:
        raise Malformed("a null where there must be none")
    return count


def write_plain_answer(
    version: int, session_id: int, topics: Iterable[tuple[str | bytes, Sequence[Plain]]]
) -> list[Any]:
    """The body of an answer: bytes, and between them the spans of the records, unread."""
    flexible = version >= _FLEXIBLE_SINCE
    parts: list[Any] = []
    named = list(topics)
    out = bytearray(_ANSWER.pack(0, 0, session_id))
    out += uvarint(len(named) + 1) if flexible else _INT32.pack(len(named))
    for topic, told in named:
        out += _name(topic, flexible)
        out += uvarint(len(told) + 1) if flexible else _INT32.pack(len(told))
        for partition, high_watermark, last_stable, log_start, aborted, spans, size in told:
            if flexible:
                out += _TOLD.pack(partition, 0, high_watermark, last_stable, log_start, aborted, _NOBODY)
                out += uvarint(size + 1)
            else:
                ends = (partition, 0, high_watermark, last_stable, log_start, 0 if aborted else -1)
                out += _OLD_TOLD.pack(*ends, _NOBODY) if version >= _RACK_SINCE else _ELDER_TOLD.pack(*ends)
                out += _INT32.pack(size)
            if size:
                parts.append(bytes(out))
                parts += spans
                out = bytearray()
            if flexible:
                out.append(0)
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    if out:
        parts.append(bytes(out))
    return parts


def _name(topic: str | bytes, flexible: bool) -> bytes:
    if isinstance(topic, bytes):
        return topic
    name = topic.encode()
    return (uvarint(len(name) + 1) if flexible else _INT16.pack(len(name))) + name
