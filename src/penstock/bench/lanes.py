"""Connections of a raw load: a request is encoded once, only its correlation id is patched, replies are counted.

Versions with fixed-width lengths are spoken (Produce 8, Fetch 11), so that a produce reply of a given request has one
size and its error codes have fixed places. Every broker since 2.4 serves them.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.client.errors import NotReachable, refusal
from penstock.protocol.frame import decode_response, encode_request
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.produce import ProduceRequest

CLIENT_ID: Final = "penstock-bench"
CORRELATION_AT: Final = 8
PRODUCE_VERSION: Final = 8
FETCH_KEY, FETCH_VERSION = 1, 11

REPLY_TIMEOUT_S: Final = 30.0
"""Longer silence of a broker ends a load with an error."""

# Of each partition in a Produce reply: index, error code, base offset, append time, log start, no record errors, no
# message.
_PARTITION_REPLY_BYTES: Final = 4 + 2 + 8 + 8 + 8 + 4 + 2


def produce_request(topic: str, batches: Sequence[tuple[int, bytes]], acks: int, timeout_ms: int = 30_000) -> bytes:
    """A framed Produce with one batch for each of several partitions."""
    partitions = [ProduceRequest.PartitionProduceData(index=index, records=batch) for index, batch in batches]
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=partitions)]
    message = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)
    return encode_request(0, CLIENT_ID, message, PRODUCE_VERSION)


def fetch_request(
    topic: str,
    partition: int,
    offset: int,
    *,
    max_wait_ms: int = 500,
    bytes_max: int = 52_428_800,
    partition_bytes_max: int = 1_048_576,
) -> bytes:
    """A framed Fetch of one partition without a session."""
    wanted = FetchRequest.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=partition_bytes_max
    )
    message = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=bytes_max,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[wanted])],
    )
    return encode_request(0, CLIENT_ID, message, FETCH_VERSION)


def open_socket(bootstrap: str) -> socket.socket:
    host, _, port = bootstrap.rpartition(":")
    try:
        opened = socket.create_connection((host.strip("[]"), int(port)), timeout=REPLY_TIMEOUT_S)
    except OSError as broken:
        raise NotReachable(str(broken), where=bootstrap) from broken
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


class Lane:
    """One connection with a fixed request; replies are counted, not parsed.

    The request carries the same batch for each of `partitions_a_request` partitions from `partition` on.
    """

    def __init__(
        self, bootstrap: str, topic: str, partition: int, batch: bytes, acks: int, *, partitions_a_request: int = 1
    ) -> None:
        partitions = range(partition, partition + partitions_a_request)
        self.frame = bytearray(produce_request(topic, [(index, batch) for index in partitions], acks))
        self.socket = open_socket(bootstrap)
        self._where = f"{topic}-{partition} at {bootstrap}"
        self._partitions = partitions_a_request
        # Length, correlation id, one topic, its name, the number of partitions; then each: index and error code.
        self._errors_at = 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4
        self._tail = b""
        self._correlation = 0
        self.reply_bytes = self._first_reply()

    def _first_reply(self) -> int:
        self.send()
        size = int.from_bytes(read_exactly(self.socket, 4), "big")
        self._check(struct.pack(">i", size) + read_exactly(self.socket, size))
        return size + 4

    def send(self) -> None:
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        struct.pack_into(">i", self.frame, CORRELATION_AT, self._correlation)
        self.socket.sendall(self.frame)

    def receive(self) -> int:
        """Reads what is there and returns the number of replies that it completed."""
        data = self._tail + self.socket.recv(1 << 16)
        if len(data) == len(self._tail):
            raise NotReachable("the broker closed the connection", where=self._where)
        whole, left = divmod(len(data), self.reply_bytes)
        for index in range(whole):
            self._check(data, index * self.reply_bytes)
        self._tail = data[len(data) - left :] if left else b""
        return whole

    def _check(self, data: bytes, at: int = 0) -> None:
        # A refusal may have words and be longer; up to the first one, every place is known.
        first = at + self._errors_at
        for place in range(first, first + self._partitions * _PARTITION_REPLY_BYTES, _PARTITION_REPLY_BYTES):
            (error,) = struct.unpack_from(">h", data, place)
            if error:
                raise refusal(error, None, self._where)

    def close(self) -> None:
        self.socket.close()


class Fetched(NamedTuple):
    high_watermark: int
    records: memoryview


class Reader:
    """One connection that fetches a partition, a request at a time."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        self._where = f"{topic}-{partition} at {bootstrap}"
        self._topic, self._partition = topic, partition
        self._socket = open_socket(bootstrap)
        self._stream = self._socket.makefile("rb", buffering=1 << 18)

    def fetch(self, offset: int) -> Fetched:
        self._socket.sendall(fetch_request(self._topic, self._partition, offset))
        head = self._stream.read(4)
        frame = self._stream.read(int.from_bytes(head, "big")) if len(head) == 4 else b""
        if not frame:
            raise NotReachable("the broker closed the connection", where=self._where)
        _correlation, reply = decode_response(frame, FETCH_KEY, FETCH_VERSION)
        if reply.error_code or not reply.responses:
            raise refusal(reply.error_code, None, self._where)
        found: FetchResponse.PartitionData = reply.responses[0].partitions[0]
        if found.error_code:
            raise refusal(found.error_code, None, self._where)
        assert isinstance(found.records, memoryview | None), "decoded record data is a view of its frame"
        return Fetched(found.high_watermark, found.records or memoryview(b""))

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = source.recv(count - len(data))
        if not chunk:
            raise NotReachable("the broker closed the connection")
        data += chunk
    return bytes(data)
