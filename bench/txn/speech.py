"""What a producer of transactions says: requests encoded once and patched, replies read at fixed places.

The protocol is that of today's Java client: Produce 12, whose first batch takes the partition into the transaction, and
EndTxn 5, whose reply has the epoch of the next transaction. Every broker is told the same bytes.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.client.errors import refusal
from penstock.kernels import Record
from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.protocol.batch import build_batch, resequence
from penstock.protocol.frame import decode_response, encode_request
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.produce import ProduceRequest

CLIENT_ID: Final = "penstock-bench"
PRODUCE_KEY, PRODUCE_VERSION = 0, 12
END_VERSION: Final = 5
AGAIN: Final = frozenset(
    each.code
    for each in (
        CONCURRENT_TRANSACTIONS,
        COORDINATOR_LOAD_IN_PROGRESS,
        COORDINATOR_NOT_AVAILABLE,
        NOT_COORDINATOR,
        NOT_LEADER_OR_FOLLOWER,
        UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""After these a client says the same again."""

_PARTITION: Final = "4xh27x"  # index, error, offset, append time, log start, no record errors, no message, no tags
_END_REPLY: Final = struct.Struct(">5x4xhqh")


class Identity(NamedTuple):
    """Who a producer is in its next transaction."""

    producer_id: int
    epoch: int


NOBODY: Final = Identity(-1, -1)


class Batch:
    """A batch that is written again and again, each time by another identity and from another sequence."""

    def __init__(self, record_bytes: int, records: int, *, transactional: bool) -> None:
        value = bytes(value % 251 for value in range(record_bytes))
        # Records of another day than their markers would make segments roll.
        now_ms = int(time.time() * 1_000)
        built = [Record(offset, now_ms, None, value) for offset in range(records)]
        self.bytes = bytearray(build_batch(built, producer_id=0 if transactional else -1, transactional=transactional))
        self.records = records

    def become(self, who: Identity, sequence: int) -> None:
        resequence(self.bytes, producer_id=who.producer_id, producer_epoch=who.epoch, base_sequence=sequence)


class ProduceFrame:
    """One Produce with the batch for each of several partitions of a topic."""

    def __init__(self, transactional_id: str | None, topic: str, partitions: Sequence[int], batch: Batch) -> None:
        self._batch = batch
        stand_in = b"\xa5" * len(batch.bytes)
        data = [ProduceRequest.PartitionProduceData(index=index, records=stand_in) for index in partitions]
        message = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=data)],
        )
        self.bytes = bytearray(encode_request(0, CLIENT_ID, message, PRODUCE_VERSION))
        self._places = list(_places(self.bytes, stand_in, len(data)))
        name = len(topic.encode())
        self._errors_at = 4 + 1 + 1 + 1 + name + 1
        self._errors = struct.Struct(">" + _PARTITION * len(data))
        self._reply_bytes = self._errors_at + self._errors.size + 1 + 4 + 1
        assert max(name, len(data)) < 127, "lengths are one byte each"

    def patch(self) -> None:
        """Puts the batch as it is now into its places."""
        frame, batch = self.bytes, self._batch.bytes
        size = len(batch)
        for at in self._places:
            frame[at : at + size] = batch

    def error_in(self, reply: bytes) -> int:
        """The first error of a reply, 0 when there is none."""
        if len(reply) == self._reply_bytes:
            return next(filter(None, self._errors.unpack_from(reply, self._errors_at)), 0)
        _correlation, told = decode_response(reply, PRODUCE_KEY, PRODUCE_VERSION)
        errors = (each.error_code for topic in told.responses for each in topic.partition_responses)
        return next(filter(None, errors), 0)


def _places(frame: bytes | bytearray, stand_in: bytes, count: int) -> Sequence[int]:
    found, at = [], 0
    for _ in range(count):
        at = frame.index(stand_in, at)
        found.append(at)
        at += len(stand_in)
    return found


def end_frame(transactional_id: str, who: Identity, *, commits: bool) -> bytes:
    message = EndTxnRequest(
        transactional_id=transactional_id, producer_id=who.producer_id, producer_epoch=who.epoch, committed=commits
    )
    return encode_request(0, CLIENT_ID, message, END_VERSION)


class EndFrame:
    """The EndTxn of one transactional id; producer id and epoch are patched."""

    def __init__(self, transactional_id: str) -> None:
        first, second = (bytearray(end_frame(transactional_id, NOBODY, commits=commits)) for commits in (True, False))
        self._frames = {True: first, False: second}
        # Id and epoch, the outcome and the tags end the frame.
        self._at = len(first) - 1 - 1 - 2 - 8

    def of(self, who: Identity, *, commits: bool) -> bytearray:
        frame = self._frames[commits]
        struct.pack_into(">qh", frame, self._at, *who)
        return frame


def end_told(reply: bytes) -> tuple[int, Identity]:
    """(error, who the producer is from now on)."""
    error, producer_id, epoch = _END_REPLY.unpack_from(reply)
    return error, Identity(producer_id, epoch)


def must_be_again(error: int, what: str) -> None:
    """Raises for an error that a client gives up at."""
    if error not in AGAIN:
        raise refusal(error, None, what)
